-- The password of the role of the processes. The environment has it, because every process of the machine can read arguments.
\getenv password POSTGRES_APP_PASSWORD
ALTER ROLE oddswire_app PASSWORD :'password';
