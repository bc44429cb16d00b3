import type Router from '@koa/router';
import type { Cidr } from '../../../src/domain/webhooks/address-policy.ts';
import { FailureStreaks } from '../../../src/observe/failures.ts';
import { clientNetwork } from '../../access/client-address.ts';
import { OpenCounts } from '../../access/open-counts.ts';
import { type ApiContext, type ApiState, VISITOR } from '../../context.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import type { AnswerDeps } from '../../http/deps.ts';
import { tooManyStreams } from '../../streams/account-use.ts';
import { badge, Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { orNothing } from './answers.ts';
import type { ApiCalls } from './api-calls.ts';
import { candleTable, chart, chartData, chartNotes, completeness, priceLabel, readChart } from './chart/chart.ts';
import { headline, type MarketRequest, pricesOf, quoteOf, viewOf } from './chart/view.ts';
import { STATUS_TONES, trendsOf } from './markets.ts';
import { fromSeconds, minute, titleOf, venueTitle } from './values.ts';

const SOURCE = '/console/public';
const STREAM = `${SOURCE}/stream`;
/** A stream that resumes names its position. */
const CURSOR = 'cursor';
const OUTCOME = 'outcome';
/** Open streams of one address: the pages of an office, but not the places of all visitors. */
const STREAMS_PER_ADDRESS = 10;

/** The configuration of the console. */
export interface ConsoleOptions {
  /** The one market that visitors without a key may read. Absent: they read nothing. */
  publicMarket?: { venue: string; marketId: string };
  /** The operator's proxies: only their `X-Forwarded-For` counts. Default: no proxies. */
  trustedProxies?: readonly Cidr[];
}

type PublicDeps = Pick<PageDeps, 'db' | 'now' | 'log'> & Pick<AnswerDeps, 'answers'>;

/** The market of the start page. */
export interface PublicMarket {
  /** The part of the page; undefined while the market is not stored or cannot be read. */
  part(requestId: string): Promise<Html | undefined>;
  /** Its data and its stream. They serve this market only, and every visitor the same. */
  routes(router: Router<ApiState>): void;
}

/** The one market that visitors without a key may read; undefined when the operator names none. */
export function createPublicMarket(
  deps: PublicDeps,
  calls: ApiCalls,
  { publicMarket, trustedProxies = [] }: ConsoleOptions,
): PublicMarket | undefined {
  if (publicMarket === undefined) return undefined;
  const { venue, marketId } = publicMarket;
  const streaks = new FailureStreaks();
  let wasShown: boolean | undefined;
  const openStreams = new OpenCounts();

  function requestOf(requestId: string): MarketRequest {
    return {
      params: { venue, market_id: marketId },
      query: new URLSearchParams(),
      nowMs: deps.now(),
      api: (call) => calls.call({ caller: VISITOR }, requestId, call),
    };
  }

  /** All visitors of a second share one answer, so their number does not change the load of the database. */
  async function shared(name: string, make: () => Promise<string>): Promise<string> {
    const { data } = await deps.answers.fetch(JSON.stringify(['console public market', name]), async () => {
      const text = await make();
      const extraBytes = Buffer.byteLength(text) - text.length;
      return { answer: { data: text, meta: '', extraBytes, etag: '', freshness: 'latest' } };
    });
    return data;
  }

  function note(isShown: boolean): void {
    if (isShown === wasShown) return;
    wasShown = isShown;
    if (isShown) deps.log.info({ venue, marketId }, 'the start page shows this market to visitors without a key');
    else {
      deps.log.warn(
        { venue, marketId },
        'CONSOLE_PUBLIC_MARKET names a market that is not stored; correct its id, or wait until the poller has stored it',
      );
    }
  }

  /** Counts the stream of a request until its end. @throws ApiError `rate_limited` */
  function countStream({ req, res }: ApiContext): void {
    const address = clientNetwork(req, trustedProxies);
    if (openStreams.of(address) >= STREAMS_PER_ADDRESS)
      throw tooManyStreams('too many pages at this address follow this market; sign in with a key');
    if (res.closed) return;
    openStreams.add(address);
    res.once('close', () => openStreams.remove(address));
  }

  return {
    async part(requestId) {
      try {
        const request = requestOf(requestId);
        const text = await shared('part', async () => (await orNothing(draw(request, deps)))?.toString() ?? '');
        streaks.succeeded('read');
        note(text !== '');
        return text === '' ? undefined : Html.of([text], []);
      } catch (error) {
        // The sign-in works without the market.
        const { inARow, shouldLog } = streaks.failed('read');
        deps.log[shouldLog ? 'warn' : 'debug']({ err: error, inARow }, 'market of the start page not read; will retry');
        return undefined;
      }
    },

    routes(router) {
      router.get(`${SOURCE}/series.json`, async (ctx) => {
        takeOnly(ctx, [OUTCOME]);
        const outcome = new URLSearchParams(ctx.querystring).get(OUTCOME) ?? '';
        // The page names the outcome that it shows: the leader may have changed since.
        const query = new URLSearchParams(outcome === '' ? {} : { [OUTCOME]: outcome });
        const request = { ...requestOf(ctx.state.requestId), query };
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = await shared(`series ${outcome}`, async () =>
          JSON.stringify(chartData(await readChart(request, await viewOf(request), []))),
        );
      });
      router.get(STREAM, async (ctx) => {
        takeOnly(ctx, [CURSOR]);
        countStream(ctx);
        const cursor = new URLSearchParams(ctx.querystring).get(CURSOR);
        ctx.params = { venue };
        ctx.querystring = new URLSearchParams({
          channels: 'prices,candles',
          snapshot: 'true',
          market_ids: marketId,
          ...(cursor !== null && { [CURSOR]: cursor }),
        }).toString();
        await calls.stream(ctx, { caller: VISITOR }, 'streamMarkets');
      });
    },
  };
}

/** @throws ApiError `invalid_request` for every other parameter */
function takeOnly({ querystring }: ApiContext, names: readonly string[]): void {
  const foreign = [...new Set(new URLSearchParams(querystring).keys())].filter((name) => !names.includes(name));
  const message = `is not a parameter here; read other markets with a key`;
  if (foreign.length > 0) throw invalidRequest(foreign.map((path) => ({ path, message })));
}

async function draw(request: MarketRequest, deps: Pick<PageDeps, 'db'>): Promise<Html> {
  const view = await viewOf(request);
  const { market, outcome } = view;
  if (!outcome) throw new ApiError('market_not_found', 'this market has no outcome');
  const [prices, trends] = await Promise.all([
    pricesOf(request, market),
    trendsOf(deps, [{ ...market, outcome_id: outcome.outcome_id }], request.nowMs),
  ]);
  const drawn = await readChart(request, view, []);
  const trend = trends.get(`${market.venue} ${market.market_id}`);
  return html`<section class="card market-chart" aria-labelledby="public-market" data-market="${market.market_id}"
 data-venue="${market.venue}" data-outcome="${outcome.outcome_id}" data-source="${SOURCE}" data-stream="${STREAM}" data-is-public>
<p class="crumbs">${venueTitle(market.venue)}${market.category !== undefined && html` · ${market.category}`}${
    market.close_at !== undefined && html` · closes ${minute(fromSeconds(market.close_at))} UTC`
  } ${badge(STATUS_TONES[market.status] ?? 'idle', market.status)}</p>
<h2 id="public-market">${titleOf(market)}</h2>
${headline(view, quoteOf(prices, outcome.outcome_id)?.price, trend?.points[0])}
${chart({ ...view, label: priceLabel(view) }, drawn)}
<div class="state-line"><p class="live" data-live>As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC; reload to update</p>
<p class="muted">${completeness(market, drawn)}</p></div>
${chartNotes(drawn)}
${candleTable(drawn.candles, drawn.interval)}
</section>`;
}
