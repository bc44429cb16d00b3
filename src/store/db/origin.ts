/**
 * SQL of the identity of this database: it changes when a dump is restored, the database is copied, or a standby takes over. Then numbers of
 * rows and transactions may repeat.
 */
export const ORIGIN = `concat_ws('.', (SELECT system_identifier FROM pg_control_system()), (SELECT timeline_id FROM pg_control_checkpoint()),
  (SELECT oid FROM pg_database WHERE datname = current_database()), 'journal_head'::regclass::oid)`;
