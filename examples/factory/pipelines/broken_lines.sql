CREATE VIEW broken_lines
COMMENT 'Lines that lack something or say it wrongly, with their texts and their file.'
AS SELECT * EXCEPT (is_quarantined) FROM movements_raw WHERE is_quarantined
