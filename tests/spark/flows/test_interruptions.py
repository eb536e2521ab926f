"""What ends a query through no fault of its flow: the flow starts it again (UP-7)."""

from __future__ import annotations

import pytest


@pytest.mark.long
def test_a_checkpoint_that_a_dying_process_still_wrote_costs_a_start_and_no_batch(project, tmp_path):
    p = project(
        f"""
        import dlt
        from pathlib import Path

        @dlt.table
        def source():
            return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))

        @dlt.foreach_batch_sink
        def letters(df, batch_id):
            with open({str(tmp_path / "log")!r}, "a") as file:
                file.write(f"{{batch_id}}:{{df.count()}};")
            if batch_id == 0:  # as the process before this one would have done
                (folder,) = Path({str(tmp_path)!r}).glob("**/storage/checkpoints/**/*letters*/**/commits")
                (folder / "0").write_text('v1\\n{{"nextBatchWatermarkMs":0}}')

        @dlt.append_flow(target="letters")
        def send():
            return dlt.read_stream("source")
        """
    )
    p.arrive("a.json", {"v": "a"})
    p.run()
    notices = [e.message for e in p.events if e.event_type == "notice"]
    assert len(notices) == 1
    assert "was still writing its checkpoint" in notices[0]
    p.arrive("b.json", {"v": "b"}, {"v": "c"})
    p.run()
    assert (tmp_path / "log").read_text() == "0:1;1:2;"


def test_a_flow_whose_process_died_while_it_wrote_its_first_offsets_starts_all_the_same(project, tmp_path):
    p = project(f"""
        import dlt

        dlt.create_sink("files", "json", {{"path": {str(tmp_path / "out")!r}}})

        @dlt.table
        def rows():
            return spark.readStream.schema("n INT").json(spark.conf.get("landing"))

        @dlt.append_flow(target="files", name="sent")
        def sent():
            return spark.readStream.schema("n INT").json(spark.conf.get("landing"))
    """)
    p.arrive("a.json", {"n": 1})
    p.run()
    checkpoints = [folder.parent for folder in (p.storage.root / "checkpoints").rglob("offsets")]
    assert len(checkpoints) == 2
    for folder in checkpoints:
        assert folder.name == "0"
        begun = folder.with_name("1") / "offsets"  # of the full refresh to come
        begun.mkdir(parents=True)
        (begun / ".0.0b5e1f6a-7c1d-4c0e-9d2f-3f6f6a1d0b57.tmp").write_text("v1\n{")
    p.run(full_refresh_all=True)
    assert p.rows("rows") == [1]
    assert all((folder.with_name("1") / "offsets" / "0").is_file() for folder in checkpoints)
