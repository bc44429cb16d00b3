import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The audit log of the operator pages becomes the one audit trail: append-only, with the writes of accounts, commands and processes. For
 * one release the view `ops_action` serves processes of the previous one.
 */
const trail = (schema: string) => [
  `ALTER TABLE ops_action RENAME TO audit_trail`,
  `ALTER TABLE audit_trail
     ADD COLUMN IF NOT EXISTS actor text COLLATE "C",
     ADD COLUMN source text COLLATE "C" NOT NULL DEFAULT 'pages' CHECK (source IN ('pages', 'api', 'command', 'process')),
     ADD COLUMN account_id bigint,
     ADD COLUMN finishes bigint`,
  // An action with a start has two rows: the second one names the first.
  `CREATE INDEX audit_trail_finishes ON audit_trail (finishes) WHERE finishes IS NOT NULL`,
  `CREATE INDEX audit_trail_of_account ON audit_trail (account_id, pk) WHERE account_id IS NOT NULL`,

  `CREATE FUNCTION refuse_audit_change() RETURNS trigger
   LANGUAGE plpgsql SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   BEGIN
     -- Inside prune_audit_trail, which runs with the rights of the owner. Another role may set the setting, but is not the owner.
     IF TG_OP = 'DELETE' AND current_setting('oddswire.prunes_audit_trail', true) = 'on'
       AND current_user = (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN
       RETURN OLD;
     END IF;
     RAISE EXCEPTION 'audit_trail is append-only' USING ERRCODE = 'insufficient_privilege';
   END $$`,
  `CREATE TRIGGER audit_trail_is_append_only BEFORE UPDATE OR DELETE ON audit_trail
   FOR EACH ROW EXECUTE FUNCTION refuse_audit_change()`,
  `CREATE TRIGGER audit_trail_is_never_truncated BEFORE TRUNCATE ON audit_trail
   FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()`,

  // Deletes at most "batch" old rows, and of each account the rows beyond the newest 100,000: an account can write rows without limit.
  `CREATE FUNCTION prune_audit_trail(before timestamptz, batch int) RETURNS int
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   DECLARE
     pruned int;
   BEGIN
     IF before IS NULL OR before > now() - interval '23 hours' THEN
       RAISE EXCEPTION 'the audit trail keeps a day at least' USING ERRCODE = 'invalid_parameter_value';
     END IF;
     PERFORM set_config('oddswire.prunes_audit_trail', 'on', true);
     WITH old AS (SELECT pk, at FROM audit_trail ORDER BY pk LIMIT batch),
     surplus AS (
       SELECT t.pk FROM account a CROSS JOIN LATERAL (
         SELECT pk FROM audit_trail WHERE account_id = a.id ORDER BY pk DESC OFFSET 100000) t LIMIT batch)
     DELETE FROM audit_trail WHERE pk IN (SELECT pk FROM old WHERE at < before UNION SELECT pk FROM surplus);
     GET DIAGNOSTICS pruned = ROW_COUNT;
     PERFORM set_config('oddswire.prunes_audit_trail', 'off', true);
     RETURN pruned;
   END $$`,
  `REVOKE EXECUTE ON FUNCTION prune_audit_trail(timestamptz, int) FROM PUBLIC`,

  `CREATE VIEW ops_action AS
     SELECT pk, at, role, session_id, address, action, target, status, result, request_id, actor FROM audit_trail`,
  // The previous release updates the row of a finished action, and deletes old rows; the first becomes a row, the second has no effect.
  `CREATE FUNCTION keep_ops_action() RETURNS trigger
   LANGUAGE plpgsql SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   BEGIN
     IF TG_OP = 'DELETE' THEN
       RETURN NULL;
     END IF;
     INSERT INTO audit_trail (at, role, session_id, address, action, target, status, result, request_id, actor, finishes)
     VALUES (greatest(OLD.at, clock_timestamp()), OLD.role, OLD.session_id, OLD.address, OLD.action, OLD.target, NEW.status, NEW.result,
       OLD.request_id, OLD.actor, OLD.pk);
     RETURN NEW;
   END $$`,
  `CREATE TRIGGER ops_action_is_append_only INSTEAD OF UPDATE OR DELETE ON ops_action
   FOR EACH ROW EXECUTE FUNCTION keep_ops_action()`,
];

const DOWN = [
  `DROP VIEW ops_action`,
  `DROP FUNCTION keep_ops_action()`,
  `DROP FUNCTION prune_audit_trail(timestamptz, int)`,
  `DROP TRIGGER audit_trail_is_never_truncated ON audit_trail`,
  `DROP TRIGGER audit_trail_is_append_only ON audit_trail`,
  `DROP FUNCTION refuse_audit_change()`,
  `ALTER TABLE audit_trail DROP COLUMN finishes, DROP COLUMN account_id, DROP COLUMN source`,
  `ALTER TABLE audit_trail RENAME TO ops_action`,
] as const;

export class AuditTrail0016 implements MigrationInterface {
  readonly name = 'AuditTrail1795968000016';

  async up(runner: QueryRunner): Promise<void> {
    const [row]: { schema: string }[] = await runner.query('SELECT quote_ident(current_schema()) AS schema');
    for (const statement of trail(row?.schema ?? 'public')) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
