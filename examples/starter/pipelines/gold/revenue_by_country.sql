-- Gold: what each country ordered per day.
CREATE OR REFRESH MATERIALIZED VIEW revenue_by_country
COMMENT 'Orders and revenue per day and country.'
TBLPROPERTIES ('quality' = 'gold')
AS SELECT day, country, count(*) AS orders, sum(amount) AS revenue
FROM orders JOIN customers USING (customer_id)
GROUP BY day, country;
