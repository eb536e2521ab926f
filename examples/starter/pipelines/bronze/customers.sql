-- Bronze: the customers, as they arrived: CSV files with a header.
CREATE OR REFRESH STREAMING TABLE customers
COMMENT 'Every customer as it arrived.'
TBLPROPERTIES ('quality' = 'bronze')
AS SELECT customer_id, name, country
FROM STREAM read_files('${landing}/customers', format => 'csv', header => true);
