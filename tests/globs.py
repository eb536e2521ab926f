"""Glob patterns of paths, and which files they take (AL-9)."""

from __future__ import annotations

GLOBS = [  # pattern, file, taken by a lenient one, taken by a strict one
    ("/a/b", "/a/b/c/file.txt", True, True),
    ("/a/b", "/a/b_dir/c/file.txt", False, False),
    ("/a/b", "/a/b.txt", False, False),
    ("/a/b/", "/a/b.txt", False, False),
    ("/a/*/c/", "/a/b/c/file.txt", True, True),
    ("/a/*/c/", "/a/b/c/d/file.txt", True, True),
    ("/a/*/d/", "/a/b/c/d/file.txt", True, False),
    ("/a/*/c/", "/a/b/x/y/c/file.txt", True, False),
    ("/a/*/c", "/a/b/c_file.txt", True, False),
    ("/a/*/c/", "/a/b/c_file.txt", True, False),
    ("/a/*/c", "/a/b/cookie/file.txt", True, False),
    ("/a/b*", "/a/b.txt", True, True),
    ("/a/b*", "/a/b/file.txt", True, True),
    ("/a/{0.txt,1.txt}", "/a/0.txt", True, True),
    ("/a/*/{0.txt,1.txt}", "/a/0.txt", False, False),
]
