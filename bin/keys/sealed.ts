import { join } from 'node:path';
import { print } from '../../cli/output.ts';
import { table } from '../../cli/table.ts';
import { ConfigError } from '../../src/config/config.ts';
import { parseSecretsKeys, type SecretKey } from '../../src/domain/values/secret-keys.ts';
import { readPrivateFile } from '../../src/embedded/private-file.ts';
import { checkRingKeys } from '../../src/store/accounts/key-ring.ts';
import { countSealed, resealAll, type SealedCount } from '../../src/store/accounts/reseal.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { createSecretBox } from '../../src/webhooks/secret-box.ts';
import type { CommandContext } from '../operator-command.ts';
import { recordCommand } from '../recorded.ts';

const PROGRESS_EVERY_MS = 1_000;

/** `keys sealed`: the number of values per key, table and column. */
export async function showSealed(db: Database, json: boolean): Promise<number> {
  const counts = await countSealed(db);
  await print(json ? `${JSON.stringify(counts)}\n` : sealedText(counts));
  return 0;
}

function sealedText(counts: readonly SealedCount[]): string {
  if (counts.length === 0) return 'No sealed values.\n';
  const rows = counts.map((count) => [count.kid, count.table, count.column, String(count.rows)]);
  return table([['key', 'table', 'column', 'rows'], ...rows], [3]);
}

/** The ring of SECRETS_KEYS, or the generated ring of an embedded database. */
export async function keyRingOf({ config, dataDir, log }: CommandContext): Promise<readonly SecretKey[]> {
  if (process.env['SECRETS_KEYS']) return config.secretsKeys;
  const generated = dataDir === undefined ? null : await readPrivateFile(join(dataDir, 'secrets.key'), log);
  if (generated === null) throw new ConfigError(['SECRETS_KEYS is required']);
  return parseSecretsKeys(generated.trim());
}

/** `keys reseal`: exit code 0 when every value is sealed with the first key afterwards. */
export async function resealWith(ring: readonly SecretKey[], db: Database, json: boolean): Promise<number> {
  const box = createSecretBox(ring);
  const [first] = box.kids;
  // Other bytes under this id would make every value unreadable for the processes.
  await checkRingKeys(db, box);
  let resealed = 0;
  let unopened = 0;
  let reportedAtMs = performance.now();
  for await (const batch of resealAll(db, box)) {
    resealed += batch.resealed;
    unopened += batch.unopened;
    if (performance.now() - reportedAtMs < PROGRESS_EVERY_MS) continue;
    process.stderr.write(`${resealed} values sealed with ${first} so far, now in ${batch.table}.${batch.column}\n`);
    reportedAtMs = performance.now();
  }
  await recordCommand(db, {
    action: 'keys.reseal',
    subject: `key ${first} of SECRETS_KEYS`,
    detail: `${resealed} values resealed`,
  });
  const left = (await countSealed(db)).filter(({ kid }) => kid !== first);
  if (json) await print(`${JSON.stringify({ kid: first, resealed, unopened, left })}\n`);
  else await print(`${resealed} values sealed with ${first}\n${left.length === 0 ? '' : sealedText(left)}`);
  if (unopened > 0) process.stderr.write(`oddswire keys: the ring cannot open ${unopened} values\n`);
  if (left.length === 0) return 0;
  process.stderr.write(
    `oddswire keys: values of other keys are left. A process whose first key is not ${first} seals with its own: run this again when none is left\n`,
  );
  return 1;
}
