import { OddswireError } from '../domain/values/errors.ts';

/** An invalid REDIS_URL. The message never repeats any part of it, because it may contain a password. */
class RedisUrlError extends OddswireError {
  constructor(message: string) {
    super('invalid_redis_url', message);
  }
}

interface RedisNode {
  readonly host: string;
  readonly port: number;
}

interface Login {
  readonly username?: string;
  readonly password?: string;
}

/** The location of the queues in Redis. */
export type RedisAddress =
  | (Login & { readonly kind: 'single'; readonly node: RedisNode; readonly db: number; readonly isTls: boolean })
  | (Login & {
      readonly kind: 'sentinel';
      /** The sentinels, which know the current master. */
      readonly nodes: readonly RedisNode[];
      readonly masterName: string;
      readonly db: number;
      readonly isTls: boolean;
      /** The login of the sentinels; the other login is the master's. */
      readonly sentinelLogin: Login;
    })
  | (Login & { readonly kind: 'cluster'; readonly nodes: readonly RedisNode[]; readonly isTls: boolean });

const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
/** The name of a master in Redis: no blanks and no characters that need escaping. */
const MASTER_NAME = /^[\w.:-]{1,128}$/;
const SENTINEL_PARAMETERS: ReadonlySet<string> = new Set(['db', 'sentinelUsername', 'sentinelPassword']);

const FORMS =
  'redis://[user:password@]host[:port][/db], ' +
  'redis-sentinel://[user:password@]host[:port],host[:port]/master[?db=n], ' +
  'redis-cluster://[user:password@]host[:port],host[:port], or any of them with rediss for TLS';

/**
 * Parses a REDIS_URL: `redis://`, `redis-sentinel://` (sentinels and the master's name, `?db=`, `?sentinelUsername=` and
 * `?sentinelPassword=`), or `redis-cluster://` (some of its nodes, which name the others), each with `rediss` for TLS. User and
 * password may be percent-encoded. @throws RedisUrlError
 */
export function parseRedisUrl(text: string): RedisAddress {
  const match = /^(rediss?)(-sentinel|-cluster)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(
    text,
  );
  if (match === null) throw new RedisUrlError(`not one of ${FORMS}`);
  const [, scheme, form = '', credentials, hosts = '', path = '', query = ''] = match;
  const isTls = scheme === 'rediss';
  const login = credentials === undefined ? {} : parseLogin(credentials);
  const parameters = new URLSearchParams(query);
  refuseUnknown(parameters, form === '-sentinel' ? SENTINEL_PARAMETERS : new Set());

  if (form === '-sentinel') {
    const masterName = decoded(path);
    if (!MASTER_NAME.test(masterName)) throw new RedisUrlError('the name of a master is missing after the sentinels');
    return {
      kind: 'sentinel',
      ...login,
      nodes: parseNodes(hosts, SENTINEL_PORT),
      masterName,
      db: parseDb(parameters.get('db') ?? ''),
      isTls,
      sentinelLogin: {
        ...present('username', parameters.get('sentinelUsername')),
        ...present('password', parameters.get('sentinelPassword')),
      },
    };
  }
  const nodes = parseNodes(hosts, REDIS_PORT);
  if (form === '-cluster') {
    if (path !== '') throw new RedisUrlError('a cluster has no numbered databases');
    return { kind: 'cluster', ...login, nodes, isTls };
  }
  const [node] = nodes;
  if (node === undefined || nodes.length > 1) {
    throw new RedisUrlError('several hosts need redis-sentinel:// or redis-cluster://');
  }
  return { kind: 'single', ...login, node, db: parseDb(path), isTls };
}

/** `user:password`, `:password` or `user`. */
function parseLogin(text: string): Login {
  const colon = text.indexOf(':');
  const username = colon === -1 ? text : text.slice(0, colon);
  const password = colon === -1 ? '' : text.slice(colon + 1);
  return { ...present('username', decoded(username)), ...present('password', decoded(password)) };
}

function present<Name extends string>(name: Name, value: string | null): { [name in Name]?: string } {
  return (value === null || value === '' ? {} : { [name]: value }) as { [name in Name]?: string };
}

function parseNodes(text: string, defaultPort: number): RedisNode[] {
  return text.split(',').map((item, index) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/.exec(item.trim());
    const host = match?.[1] ?? match?.[2];
    const port = Number(match?.[3] ?? defaultPort);
    // The error gives only the position: a value in the wrong place may be a secret.
    if (host === undefined || port < 1 || port > 65_535) throw new RedisUrlError(`host ${index + 1} is not host:port`);
    return { host, port };
  });
}

function parseDb(text: string): number {
  if (!/^\d{0,4}$/.test(text)) throw new RedisUrlError('the database is not a number');
  return Number(text);
}

function refuseUnknown(parameters: URLSearchParams, known: ReadonlySet<string>): void {
  const names = [...parameters.keys()];
  const index = names.findIndex((name, at) => !known.has(name) || names.indexOf(name) !== at);
  if (index !== -1) throw new RedisUrlError(`parameter ${index + 1} is unknown or repeated`);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RedisUrlError('invalid percent-encoding');
  }
}
