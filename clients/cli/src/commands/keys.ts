import { UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import type { ApiKey } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR, KEY_STATUSES, SCOPES } from '../options.ts';
import { FORMATS, futureMoment, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, printRows, readUpTo } from '../rows.ts';
import { oneId } from './alerts.ts';

const DEFAULT_LIMIT = 50;

const COLUMNS: readonly Column<ApiKey>[] = [
  { name: 'id', of: ({ id }) => id },
  { name: 'status', of: ({ status, current }) => (current ? `${status} (this key)` : status) },
  { name: 'scopes', of: ({ scopes }) => scopes.join(' ') },
  { name: 'created', of: ({ createdAt }) => createdAt, show: ({ createdAt }) => utc(createdAt) },
  { name: 'expires', of: ({ expiresAt }) => expiresAt, show: ({ expiresAt }) => utc(expiresAt) },
  { name: 'last used', of: ({ lastUsedAt }) => lastUsedAt, show: ({ lastUsedAt }) => utc(lastUsedAt) },
  { name: 'name', of: ({ name }) => name, cutAt: 40 },
];

export const keys: CliCommand = {
  summary: 'Lists, creates and revokes the API keys of the account.',
  forms: ['keys [list] [--status STATUS]', 'keys create NAME --scopes SCOPES [--expires TIME]', 'keys get|revoke ID'],
  verbs: ['list', 'create', 'get', 'revoke'],
  options: {
    scopes: { value: 'SCOPES', help: `of a new key: a comma list of ${SCOPES.join(', ')} that your key has too` },
    expires: { value: 'TIME', help: 'the end of a new key: a span from now such as 90d, a date, or ISO 8601 in UTC' },
    status: { value: 'STATUS', choices: KEY_STATUSES, help: 'only keys of this state' },
    limit: { value: 'N', help: `the number of listed keys, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    ...FORMATS,
  },
  words: [0, 2],
  async run(call) {
    const [verb = 'list', ...rest] = call.words;
    const { signal } = call.io;
    if (verb === 'list') return listKeys(call);
    if (verb === 'create') {
      const made = await call.client().keys.create(newKey(call, rest), { signal });
      const columns: Column<ApiKey & { key: string }>[] = [...COLUMNS, { name: 'key', of: ({ key }) => key }];
      await printRows(call, { rows: [made], columns, answer: made, none: '' });
      await call.note('the key is shown only once: save it now');
      return EXIT.done;
    }
    const id = oneId(rest, `keys ${verb}`);
    // The history of the shell would keep a whole key.
    if (id.startsWith('ow_live_')) throw new UsageError([`keys ${verb} takes the id of a key, not the key`]);
    const key = await (verb === 'get'
      ? call.client().keys.get(id, { signal })
      : call.client().keys.revoke(id, { signal }));
    await printRows(call, { rows: [key], columns: COLUMNS, answer: key, none: '' });
    return EXIT.done;
  },
};

async function listKeys(call: Call): Promise<number> {
  const client = call.client();
  const status = KEY_STATUSES.find((each) => each === call.texts.get('status'));
  const limit = wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? DEFAULT_LIMIT;
  const page = await readUpTo(limit, call.texts.get('cursor'), (place) =>
    client.keys.list({ ...place, ...(status && { status }) }, { signal: call.io.signal }),
  );
  await printRows(call, { rows: page.data, columns: COLUMNS, answer: page, none: 'no key' });
  return EXIT.done;
}

function newKey(call: Call, words: readonly string[]) {
  const [name] = words;
  const asked = call.texts.get('scopes')?.split(',') ?? [];
  const scopes = SCOPES.filter((scope) => asked.includes(scope));
  const problems = [
    ...(name === undefined ? ['keys create takes a NAME'] : []),
    ...(asked.length > 0 && scopes.length === new Set(asked).size
      ? []
      : [`--scopes must be a comma list of ${SCOPES.join(', ')}`]),
  ];
  if (problems.length > 0 || name === undefined) throw new UsageError(problems);
  const seconds = futureMoment(call, 'expires', call.io.now());
  return { name, scopes, ...(seconds !== undefined && { expiresAt: new Date(seconds * 1_000).toISOString() }) };
}
