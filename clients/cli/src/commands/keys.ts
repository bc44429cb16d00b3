import { choiceOf, present, UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { SCOPES } from '../../../../src/domain/values/api-key.ts';
import type { ApiKey } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR, FORMATS, futureMoment } from '../read-arguments.ts';
import { type Column, DEFAULT_LIMIT, printList, printOne } from '../rows.ts';
import { oneId } from './alerts.ts';

const KEY_STATUSES = ['active', 'expired', 'revoked'] as const;

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
    if (verb === 'list') {
      const status = present({ status: choiceOf(call, 'status', KEY_STATUSES) });
      const { keys: api } = call.client();
      return printList(call, { columns: COLUMNS, none: 'no key' }, (place) =>
        api.list({ ...place, ...status }, { signal }),
      );
    }
    if (verb === 'create') {
      const made = await call.client().keys.create(newKey(call, rest), { signal });
      const columns: Column<ApiKey & { key: string }>[] = [...COLUMNS, { name: 'key', of: ({ key }) => key }];
      await printOne(call, columns, made);
      await call.note('the key is shown only once: save it now');
      return EXIT.done;
    }
    const id = oneId(rest, `keys ${verb}`);
    // The history of the shell would keep a whole key.
    if (id.startsWith('ow_live_')) throw new UsageError([`keys ${verb} takes the id of a key, not the key`]);
    const key = await (verb === 'get'
      ? call.client().keys.get(id, { signal })
      : call.client().keys.revoke(id, { signal }));
    return printOne(call, COLUMNS, key);
  },
};

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
