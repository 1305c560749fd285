#!/bin/sh
# The hub's own role and database, at the first start of PostgreSQL. The hub is no superuser.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set password="$(cat /run/postgres-secrets/hub)" \
  --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
CREATE ROLE aip_hub LOGIN PASSWORD :'password';
CREATE DATABASE aip_hub OWNER aip_hub;
REVOKE ALL ON DATABASE aip_hub FROM PUBLIC;
SQL
