import type { RouterMiddleware } from '@koa/router';
import type { z } from 'zod';
import type { ApiJson } from '../../src/domain/values/api-json.ts';
import type { Database, Tx } from '../../src/store/db/tx.ts';
import type { ApiContext, ApiRouter, ApiState, Caller, RouteGroup } from '../context.ts';
import { type ErrorCode, invalidRequest } from '../errors.ts';
import { type AuthDeps, authenticate, callerOf } from '../middleware/authenticate.ts';
import { type Deprecation, deprecation } from '../middleware/deprecation.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { internalCallOf } from '../middleware/request-context.ts';
import { columnsOf } from './csv-answer.ts';
import type { AnswerDeps } from './deps.ts';
import { answerOnce, type WriteAnswer, type WriteProgress } from './idempotent-write.ts';
import { bodyChecker, queryReader } from './input.ts';
import { parameterCheck } from './parameter-names.ts';
import { type PathRoute, registerPaths } from './paths.ts';
import { logWrite, recordingDatabase, recordWrite } from './recorded-write.ts';
import { type AccountAnswer, type MarketRead, sendAccountData, sendMarketData } from './respond.ts';

/** The groups of routes in the document. */
export type RouteTag =
  | 'markets'
  | 'streams'
  | 'webhooks'
  | 'deliveries'
  | 'alerts'
  | 'wallets'
  | 'watchlist'
  | 'archive'
  | 'keys'
  | 'health'
  | 'contract';

type ParamName<Path extends string> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? Name | ParamName<`/${Rest}`>
  : Path extends `${string}/:${infer Name}`
    ? Name
    : never;
/** The parameters of a path such as `/v1/alerts/:alert_id`, unchecked. */
type PathParams<Path extends string> = { readonly [Name in ParamName<Path>]: string };

type NoQuery = z.ZodObject<Record<never, never>>;
type NoBody = z.ZodUndefined;
type NoMeta = z.ZodObject<Record<never, never>>;
/** The fields in `meta` of a market route besides request id and timestamp. */
type MetaSchema = z.ZodObject & z.ZodType<{ readonly [key: string]: ApiJson | undefined }>;

/** The documentation of a route besides its schemas. */
interface RouteDocs<Path extends string> {
  path: Path;
  /** Names it in generated clients. */
  operationId: string;
  summary: string;
  description: string;
  /** Published in the document and in every answer; see middleware/deprecation.ts. */
  deprecated?: Deprecation;
  /**
   * Codes of the route's own rules. The document adds the codes for key, path parameters, query and body, and for server
   * failures.
   */
  errors?: readonly ErrorCode[];
}

interface BodySpec<Body extends z.ZodType> {
  schema: Body;
  example: z.input<Body>;
  /** Whether the request may have no body, which then reads as `{}`. */
  isOptional?: true;
}

/** A route in the document. */
export interface RouteContract extends RouteDocs<string> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  tag: RouteTag;
  /** Absent: the route needs no key. */
  group?: RouteGroup;
  query?: z.ZodObject;
  body?: BodySpec<z.ZodType>;
  /** Whether the route accepts the header `Idempotency-Key` and may answer with `Idempotent-Replayed`. */
  isIdempotent?: true;
  answer: AnswerContract;
}

/** The answer of a write that goes on after it. */
interface AcceptedContract {
  description: string;
  data: z.ZodType;
  example: ApiJson;
}

/** The success answer of a route. `envelope` is the form around its data. */
type AnswerContract =
  | {
      envelope: 'account';
      status: 200 | 201 | 202;
      description: string;
      data: z.ZodType;
      example: ApiJson;
      /** Whether the answer is a list with pages and `meta.next_cursor`. */
      isPaged: boolean;
      /** The columns of its CSV; absent when the answer is no list. */
      columns?: readonly string[];
      /** The answer with 202, when the route may give both. */
      accepted?: AcceptedContract;
    }
  | {
      envelope: 'market';
      status: 200;
      description: string;
      data: z.ZodType;
      meta?: z.ZodObject;
      example: ApiJson;
      metaExample: { readonly [key: string]: ApiJson | undefined };
      /** The columns of its CSV; absent when the answer is no list. */
      columns?: readonly string[];
    }
  | {
      envelope: 'stream';
      status: 200;
      description: string;
      /** The `data` of each event. */
      data: z.ZodType;
      example: ApiJson;
    }
  | {
      envelope: 'file';
      status: 200;
      description: string;
      /** Without parameters. */
      mediaTypes: readonly string[];
    }
  | {
      /** The bytes of a file that never changes, whole or in part. */
      envelope: 'download';
      status: 200;
      description: string;
      mediaType: string;
    };

/** One definition for the router, the input checks and the document. */
export interface Route {
  contract: RouteContract;
  /** Answers an authenticated request. */
  run(ctx: ApiContext, deps: AnswerDeps): void | Promise<void>;
}

/** The checked input of an account handler. */
interface AccountRequest<Path extends string, Query extends z.ZodObject, Body extends z.ZodType> {
  ctx: ApiContext;
  caller: Caller;
  params: PathParams<Path>;
  query: z.output<Query>;
  body: z.output<Body>;
  /** The database of a write outside `writeRoute`: with `recordedAs`, its transaction also stores a row of the audit trail. */
  db: Pick<Database, 'transaction'>;
}

interface AccountSpec<
  Path extends string,
  Query extends z.ZodObject,
  Body extends z.ZodType,
  Data extends z.ZodType<ApiJson>,
> extends RouteDocs<Path> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  tag: RouteTag;
  group: RouteGroup;
  query?: Query;
  body?: BodySpec<Body>;
  answer: { status?: 200 | 201 | 202; description: string; data: Data; example: z.output<Data>; isPaged?: true };
  /** The name of this write in the audit trail. Absent: the log has it, but not the trail. */
  recordedAs?: string;
}

/** A route for resources of an account: `{success, data}`, never cached. */
export function accountRoute<
  const Path extends `/${string}`,
  Data extends z.ZodType<ApiJson>,
  Query extends z.ZodObject = NoQuery,
  Body extends z.ZodType = NoBody,
>(
  spec: AccountSpec<Path, Query, Body, Data>,
  handle: (request: AccountRequest<Path, Query, Body>) => Promise<AccountAnswer<z.output<NoInfer<Data>>>>,
): Route {
  const { answer, body, recordedAs: _, ...docs } = spec;
  const status = answer.status ?? 200;
  const readQuery = queryReader(spec.query);
  const checkBody = body && bodyChecker(body.schema);
  const bodyOptions = { isOptional: body?.isOptional ?? false };
  const columns = spec.method === 'get' ? columnsOf(answer.data) : undefined;
  return {
    contract: {
      ...docs,
      ...(body && { body }),
      answer: { ...answer, envelope: 'account', status, isPaged: answer.isPaged ?? false, ...(columns && { columns }) },
    },
    async run(ctx, deps) {
      const query = readQuery(ctx);
      const sent = body && (await readJsonBody(ctx, bodyOptions));
      const checked = checkBody?.(sent) as z.output<Body>;
      if (spec.method === 'patch' && fieldsOf(sent).length === 0) {
        throw invalidRequest([{ path: 'body', message: 'must have at least one field' }]);
      }
      const params = ctx.params as PathParams<Path>;
      const caller = callerOf(ctx);
      const db =
        spec.recordedAs === undefined
          ? deps.db
          : recordingDatabase(deps, ctx, caller, {
              action: spec.recordedAs,
              target: Object.values<string>(params).join(' '),
              fields: fieldsOf(checked),
            });
      const answered = await handle({ ctx, caller, params, query, body: checked, db });
      if (spec.method !== 'get') logWrite(ctx, spec.operationId, params, answered);
      // The document requires `next_cursor` in the `meta` of a list, which warnings need.
      const meta = answered.meta ?? (answer.isPaged && ctx.state.warnings ? { next_cursor: null } : undefined);
      sendAccountData(ctx, deps, status, meta ? { ...answered, meta } : answered, columns);
    },
  };
}

/**
 * A POST for resources of an account, which runs at most once per `Idempotency-Key`. The handler changes state only through `tx`; see
 * `answerOnce`. Its errors roll back.
 */
export function writeRoute<
  const Path extends `/${string}`,
  Data extends z.ZodType<ApiJson>,
  Body extends z.ZodType = NoBody,
>(
  spec: Omit<AccountSpec<Path, NoQuery, Body, Data>, 'method' | 'query'> & {
    body: BodySpec<Body>;
    answer: { accepted?: AcceptedContract };
    /** Whose repetitions with an `Idempotency-Key` get the stored answer. Default: every key of the account. */
    replaysTo?: 'key';
  },
  handle: (
    tx: Tx,
    request: AccountRequest<Path, NoQuery, Body>,
    progress: string | undefined,
  ) => Promise<WriteAnswer<z.output<Data>> | (WriteAnswer & { status: 202 }) | WriteProgress>,
): Route {
  const { answer, body, recordedAs, replaysTo, ...docs } = spec;
  const status = answer.status ?? 200;
  const checkBody = bodyChecker(body.schema);
  const bodyOptions = { isOptional: body.isOptional ?? false };
  const errors = [...new Set([...(spec.errors ?? []), 'conflict', 'idempotency_mismatch'] as const)];
  return {
    contract: {
      ...docs,
      body,
      method: 'post',
      isIdempotent: true,
      errors,
      answer: { ...answer, envelope: 'account', status, isPaged: false },
    },
    async run(ctx, deps) {
      const sent = await readJsonBody(ctx, bodyOptions);
      const checked = checkBody(sent) as z.output<Body>;
      const params = ctx.params as PathParams<Path>;
      const caller = callerOf(ctx);
      let written: WriteAnswer | undefined;
      await answerOnce({ ctx, caller, body: sent, status, replaysTo }, deps, async (tx, progress) => {
        const request = { ctx, caller, params, query: {} as z.output<NoQuery>, body: checked, db: deps.db };
        const made = await handle(tx, request, progress);
        if ('progress' in made) return made;
        written = made;
        if (recordedAs !== undefined) {
          const target = idOf(made.data) ?? Object.values<string>(params).join(' ');
          await recordWrite(tx, deps, ctx, caller, { action: recordedAs, target, fields: fieldsOf(checked) });
        }
        return made;
      });
      logWrite(ctx, spec.operationId, params, written);
    },
  };
}

/** The id of a created object. */
function idOf(data: ApiJson): string | undefined {
  const id = typeof data === 'object' && data !== null && 'id' in data ? data['id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

function fieldsOf(body: unknown): string[] {
  return typeof body === 'object' && body !== null ? Object.keys(body) : [];
}

/** A GET route without a key. */
export function publicRoute<const Path extends `/${string}`, Data extends z.ZodType<ApiJson>>(
  spec: RouteDocs<Path> & { tag: RouteTag; answer: { description: string; data: Data; example: z.output<Data> } },
  handle: (ctx: ApiContext) => Promise<AccountAnswer<z.output<NoInfer<Data>>>>,
): Route {
  return {
    contract: {
      ...spec,
      method: 'get',
      answer: { ...spec.answer, envelope: 'account', status: 200, isPaged: false },
    },
    async run(ctx, deps) {
      sendAccountData(ctx, deps, 200, await handle(ctx));
    },
  };
}

/** A file, without a key. The handler writes the answer. */
export function fileRoute<const Path extends `/${string}`>(
  spec: RouteDocs<Path> & { tag: RouteTag; answer: { description: string; mediaTypes: readonly string[] } },
  handle: (ctx: ApiContext, params: PathParams<Path>) => void,
): Route {
  return {
    contract: { ...spec, method: 'get', answer: { ...spec.answer, envelope: 'file', status: 200 } },
    run: (ctx) => handle(ctx, ctx.params as PathParams<Path>),
  };
}

/** The checked input of a market handler. */
interface MarketRequest<Path extends string, Query extends z.ZodObject> {
  params: PathParams<Path>;
  query: z.output<Query>;
}

interface MarketSpec<
  Path extends string,
  Query extends z.ZodObject,
  Data extends z.ZodType<ApiJson>,
  Meta extends MetaSchema,
> extends RouteDocs<Path> {
  /** Default: market data. */
  tag?: RouteTag;
  group?: RouteGroup;
  query?: Query;
  answer: {
    description: string;
    data: Data;
    example: z.output<Data>;
    /** The fields in `meta` besides request id and timestamp. */
    meta?: Meta;
    metaExample?: z.output<Meta>;
  };
}

export const WEBHOOKS_GROUP: RouteGroup = { header: 'X-API-Key', scope: 'webhooks' };
export const MARKET_GROUP: RouteGroup = { header: 'Authorization', scope: 'markets:read' };

/** A read of market data: envelope with meta, ETag, and answers from memory. A list is also available as CSV. */
export function marketRoute<
  const Path extends `/${string}`,
  Data extends z.ZodType<ApiJson>,
  Query extends z.ZodObject = NoQuery,
  Meta extends MetaSchema = NoMeta,
>(
  spec: MarketSpec<Path, Query, Data, Meta>,
  handle: (request: MarketRequest<Path, Query>) => MarketRead<z.output<NoInfer<Data>>, z.output<NoInfer<Meta>>>,
): Route {
  const { answer, ...docs } = spec;
  const { meta, metaExample = {}, ...shown } = answer;
  const readQuery = queryReader(spec.query);
  const columns = columnsOf(answer.data);
  return {
    contract: {
      tag: 'markets',
      group: MARKET_GROUP,
      ...docs,
      method: 'get',
      answer: {
        ...shown,
        envelope: 'market',
        status: 200,
        ...(meta && { meta }),
        metaExample,
        ...(columns && { columns }),
      },
    },
    run: (ctx, deps) =>
      sendMarketData(ctx, deps, handle({ params: ctx.params as PathParams<Path>, query: readQuery(ctx) }), {
        columns,
        // Recent answers go to every key with the scope of market data.
        isRecent: spec.group === undefined,
      }),
  };
}

interface DownloadSpec<Path extends string> extends RouteDocs<Path> {
  tag: RouteTag;
  group: RouteGroup;
  answer: { description: string; mediaType: string };
}

/** The bytes of a file, for a key. The handler writes the answer. */
export function downloadRoute<const Path extends `/${string}`>(
  spec: DownloadSpec<Path>,
  handle: (request: { ctx: ApiContext; caller: Caller; params: PathParams<Path> }) => Promise<void>,
): Route {
  return {
    contract: { ...spec, method: 'get', answer: { ...spec.answer, envelope: 'download', status: 200 } },
    run: (ctx) => handle({ ctx, caller: callerOf(ctx), params: ctx.params as PathParams<Path> }),
  };
}

interface StreamSpec<Path extends string, Query extends z.ZodObject, Data extends z.ZodType> extends RouteDocs<Path> {
  tag: RouteTag;
  group: RouteGroup;
  query: Query;
  answer: { description: string; data: Data; example: ApiJson };
}

/** A stream of server-sent events. The handler starts it, or throws an error that is answered like that of any route. */
export function streamRoute<const Path extends `/${string}`, Query extends z.ZodObject, Data extends z.ZodType>(
  spec: StreamSpec<Path, Query, Data>,
  handle: (request: {
    ctx: ApiContext;
    caller: Caller;
    params: PathParams<Path>;
    query: z.output<Query>;
  }) => Promise<void>,
): Route {
  const { answer, ...docs } = spec;
  const readQuery = queryReader(spec.query);
  return {
    contract: { ...docs, method: 'get', answer: { ...answer, envelope: 'stream', status: 200 } },
    run: (ctx) => handle({ ctx, caller: callerOf(ctx), params: ctx.params as PathParams<Path>, query: readQuery(ctx) }),
  };
}

/** Registers routes behind the authentication of their group. */
export function register(router: ApiRouter, deps: AnswerDeps & AuthDeps, routes: readonly Route[]): void {
  const parameters = new Set(routes.flatMap(({ contract }) => Object.keys(contract.query?.shape ?? {})));
  const entries = routes.map(({ contract, run }): PathRoute => {
    const steps: RouterMiddleware<ApiState>[] = [];
    if (contract.deprecated) steps.push(deprecation(contract.deprecated));
    if (contract.group) {
      const check = parameterCheck(contract, parameters);
      steps.push(authenticate(deps, contract.group), (ctx, next) => {
        check(ctx);
        return next();
      });
    }
    steps.push((ctx) => run(ctx, internalCallOf(ctx.req)?.deps ?? deps));
    return { method: contract.method, path: contract.path, steps };
  });
  registerPaths(router, entries);
}
