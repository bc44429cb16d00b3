import pg from 'pg';
import { Pool } from 'undici';

/**
 * The plain program: it polls the routes of the configured venues at the default intervals, parses every field, holds its state in
 * memory, and inserts each new trade, changed price and changed book into a table with a primary key only, one statement and so one
 * transaction per page. It shares no code with the service, has four connections to Postgres, and recovers nothing.
 * Its parent gives the addresses in PLAIN, and gets the counts over the channel.
 */
const { simulatorUrl, databaseUrl, pollMs, bookMarkets } = JSON.parse(process.env.PLAIN);
/** Requests per second to each host, as the service sends them. */
const RATES = { gamma: 20, clob: 40, data: 6, kalshi: 10, manifold: 8, limitless: 3 };
const LIMITLESS_ROUND_MS = 10_000;

const http = new Pool(simulatorUrl, { connections: 8 });
const db = new pg.Pool({ connectionString: databaseUrl, application_name: 'plain', max: 4 });
const counts = { trades: 0, prices: 0, books: 0, requests: 0, failures: 0 };
const nextAt = new Map();

async function turnAt(host) {
  const now = performance.now();
  const at = Math.max(now, nextAt.get(host) ?? 0);
  nextAt.set(host, at + 1_000 / RATES[host]);
  if (at > now) await pause(at - now);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function ask(host, path, body) {
  await turnAt(host);
  counts.requests += 1;
  const headers = { 'user-agent': 'plain', ...(body && { 'content-type': 'application/json' }) };
  const given = body && { method: 'POST', body: JSON.stringify(body) };
  const answer = await http.request({ method: 'GET', path, headers, ...given });
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${await answer.body.text()}`);
  return answer.body.json();
}

const DECIMAL = /^-?\d+(\.\d+)?$/;
const TIME = /^\d{4}-\d\d-\d\dT/;

/** Every field of a record: decimals as numbers, times as milliseconds. Ids of 16 digits and more stay text. */
function parsed(value) {
  if (typeof value === 'string') {
    if (value.length < 16 && DECIMAL.test(value)) return Number(value);
    return TIME.test(value) ? Date.parse(value) : value;
  }
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(parsed);
  const record = {};
  for (const key in value) record[key] = parsed(value[key]);
  return record;
}

const tokens = new Map();
function tokenOf(outcome) {
  const known = tokens.get(outcome);
  if (known !== undefined) return known;
  tokens.set(outcome, tokens.size + 1);
  return tokens.size;
}

/** A page may repeat a trade of the page before, when trades arrive between the two. */
const STATEMENTS = {
  trades: `INSERT INTO trade SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::numeric[], $5::numeric[], $6::smallint[]) ON CONFLICT DO NOTHING`,
  prices: `INSERT INTO price SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::numeric[], $5::numeric[], $6::numeric[])`,
  books: `INSERT INTO book SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::jsonb[], $4::jsonb[])`,
};

/** One transaction for the rows of a page. */
async function insert(kind, rows) {
  if (rows.length === 0) return;
  const columns = rows[0].map((_, column) => rows.map((row) => row[column]));
  const { rowCount } = await db.query({ name: kind, text: STATEMENTS[kind], values: columns });
  counts[kind] += rowCount;
}

const knownPrices = new Map();
/** Both outcomes of the markets whose quotes changed: `[outcome, otherOutcome, price, bid, ask]`. */
function priceRows(quotes, now) {
  const rows = [];
  for (const [outcome, other, price, bid, ask] of quotes) {
    const text = `${price} ${bid} ${ask}`;
    if (price === undefined || knownPrices.get(outcome) === text) continue;
    knownPrices.set(outcome, text);
    rows.push([tokenOf(outcome), now, now, price, bid, ask]);
    rows.push([tokenOf(other), now, now, mirrored(price), mirrored(ask), mirrored(bid)]);
  }
  return rows;
}

const mirrored = (price) => (price === undefined ? undefined : Number((1 - price).toFixed(6)));
const middleOf = (bid, ask) => (bid === undefined || ask === undefined ? (bid ?? ask) : (bid + ask) / 2);

const knownBooks = new Map();
/** The changed ones of `[outcome, bids, asks]`. */
function bookRows(books, now) {
  const rows = [];
  for (const [outcome, bids, asks] of books) {
    const [bidText, askText] = [JSON.stringify(bids), JSON.stringify(asks)];
    if (knownBooks.get(outcome) === bidText + askText) continue;
    knownBooks.set(outcome, bidText + askText);
    rows.push([tokenOf(outcome), now, bidText, askText]);
  }
  return rows;
}

const batchesOf = (items, size) =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
const hottest = (markets) => [...markets.values()].sort((a, b) => b.volume - a.volume).slice(0, bookMarkets);

const polymarket = { markets: new Map(), mark: 0, newest: Math.floor(Date.now() / 1_000), limit: 100 };
const POLYMARKET = {
  async markets() {
    const isFirst = polymarket.mark === 0;
    const order = isFirst ? 'order=id' : 'order=updatedAt';
    let newest = polymarket.mark;
    for (let cursor = '', more = true; more; ) {
      const page = `/gamma/markets/keyset?limit=100&closed=false&include_tag=true&${order}&ascending=false${cursor}`;
      const { markets, next_cursor } = await ask('gamma', page);
      let isOld = false;
      for (const market of markets.map(parsed)) {
        newest = Math.max(newest, market.updatedAt);
        isOld ||= !isFirst && market.updatedAt <= polymarket.mark;
        const ids = JSON.parse(market.clobTokenIds);
        polymarket.markets.set(market.id, { tokens: ids, volume: market.volumeNum });
      }
      more = next_cursor !== undefined && next_cursor !== '' && !isOld;
      cursor = `&after_cursor=${encodeURIComponent(next_cursor)}`;
    }
    polymarket.mark = newest;
  },
  async trades() {
    const rows = [];
    let newest = polymarket.newest;
    const query = `limit=${polymarket.limit}&taker_only=true&filter_type=TOKENS&filter_amount=0.000001`;
    for (let path = query, more = true; more; ) {
      const { data, pagination } = await ask('data', `/data/v2/trades?${path}`);
      const fresh = data.filter(({ timestamp }) => timestamp > polymarket.newest).map(parsed);
      for (const trade of fresh) {
        newest = Math.max(newest, trade.timestamp);
        const id = `${trade.transaction_hash}-${rows.length}`;
        const side = trade.side === 'BUY' ? 1 : -1;
        rows.push([tokenOf(trade.token_id), new Date(trade.timestamp * 1_000), id, trade.price, trade.size, side]);
      }
      const next = pagination?.next_cursor;
      more = fresh.length === data.length && data.length > 0 && Boolean(next);
      path = `taker_only=true&filter_type=TOKENS&filter_amount=0.000001&cursor=${encodeURIComponent(next ?? '')}`;
    }
    polymarket.newest = newest;
    polymarket.limit = Math.min(1_000, Math.max(100, 2 * rows.length));
    await insert('trades', rows);
  },
  async prices() {
    await Promise.all(
      batchesOf([...polymarket.markets.values()], 500).map(async (markets) => {
        const others = new Map(markets.map(({ tokens: [first, second] }) => [first, second]));
        const asked = markets.map(({ tokens: [first] }) => ({ token_id: first }));
        const books = (await ask('clob', '/clob/books', asked)).map(parsed);
        const quotes = books.map(({ asset_id, bids, asks }) => {
          const [bid, offer] = [bids.at(-1)?.price, asks.at(-1)?.price];
          return [asset_id, others.get(asset_id), middleOf(bid, offer), bid, offer];
        });
        await insert('prices', priceRows(quotes, new Date()));
      }),
    );
  },
  async books() {
    const ids = hottest(polymarket.markets).flatMap((market) => market.tokens);
    for (const part of batchesOf(ids, 500)) {
      const asked = part.map((token_id) => ({ token_id }));
      const books = (await ask('clob', '/clob/books', asked)).map(parsed);
      const levels = (side) => (side ?? []).map(({ price, size }) => [price, size]);
      const rows = books.map(({ asset_id, bids, asks }) => [asset_id, levels(bids), levels(asks)]);
      await insert('books', bookRows(rows, new Date()));
    }
  },
};

const KALSHI_PATH = '/kalshi/trade-api/v2';
const kalshi = { markets: new Map(), since: 0, newest: Date.now() };
async function kalshiPages(path, field, take) {
  for (let cursor = '', more = true; more; ) {
    const answer = await ask('kalshi', `${KALSHI_PATH}${path}${cursor && `&cursor=${cursor}`}`);
    more = (await take(answer[field])) !== false && Boolean(answer.cursor);
    cursor = answer.cursor;
  }
}
const ofTicker = (ticker) => [`${ticker}:yes`, `${ticker}:no`];
const KALSHI = {
  async markets() {
    const since = kalshi.since;
    kalshi.since = Math.floor(Date.now() / 1_000);
    const path =
      since === 0
        ? '/markets?mve_filter=exclude&limit=1000&status=open'
        : `/markets?mve_filter=exclude&limit=200&min_updated_ts=${since}`;
    await kalshiPages(path, 'markets', (markets) => {
      for (const market of markets.map(parsed))
        kalshi.markets.set(market.ticker, { ...market, volume: market.volume_fp });
    });
  },
  async trades() {
    const rows = [];
    let newest = kalshi.newest;
    await kalshiPages(`/markets/trades?limit=1000&min_ts=${Math.floor(kalshi.newest / 1_000)}`, 'trades', (trades) => {
      for (const trade of trades) {
        const at = Date.parse(trade.created_time);
        if (at <= kalshi.newest || trade.ticker.startsWith('KXMVE')) continue;
        const { ticker, trade_id, yes_price_dollars, count_fp, taker_side } = parsed(trade);
        newest = Math.max(newest, at);
        const side = taker_side === 'yes' ? 1 : -1;
        rows.push([tokenOf(ofTicker(ticker)[0]), new Date(at), trade_id, yes_price_dollars, count_fp, side]);
      }
    });
    kalshi.newest = newest;
    await insert('trades', rows);
  },
  async prices() {
    await kalshiPages('/markets?mve_filter=exclude&limit=1000&status=open', 'markets', async (markets) => {
      const quotes = markets.map(parsed).map(({ ticker, yes_bid_dollars: bid, yes_ask_dollars: offer }) => {
        return [...ofTicker(ticker), middleOf(bid, offer), bid, offer];
      });
      await insert('prices', priceRows(quotes, new Date()));
    });
  },
  async books() {
    for (const part of batchesOf(hottest(kalshi.markets), 100)) {
      const query = part.map(({ ticker }) => `tickers=${ticker}`).join('&');
      const { orderbooks } = await ask('kalshi', `${KALSHI_PATH}/markets/orderbooks?${query}`);
      const rows = orderbooks.map(parsed).flatMap(({ ticker, orderbook_fp: { yes_dollars, no_dollars } }) => {
        const [yes, no] = ofTicker(ticker);
        const flipped = (levels) => (levels ?? []).map(([price, size]) => [mirrored(price), size]);
        return [
          [yes, yes_dollars ?? [], flipped(no_dollars)],
          [no, no_dollars ?? [], flipped(yes_dollars)],
        ];
      });
      await insert('books', bookRows(rows, new Date()));
    }
  },
};

const manifold = { ids: new Set(), mark: 0, newest: Date.now() };
const MANIFOLD = {
  async markets() {
    let newest = manifold.mark;
    const order = manifold.mark === 0 ? 'created-time' : 'updated-time';
    for (let before = '', more = true; more; ) {
      const markets = (await ask('manifold', `/manifold/v0/markets?limit=1000&sort=${order}${before}`)).map(parsed);
      for (const { id, lastUpdatedTime, isResolved } of markets) {
        newest = Math.max(newest, lastUpdatedTime);
        if (!isResolved) manifold.ids.add(id);
      }
      more = markets.length === 1_000 && (manifold.mark === 0 || markets.at(-1).lastUpdatedTime > manifold.mark);
      before = `&before=${markets.at(-1)?.id}`;
    }
    manifold.mark = newest;
  },
  async trades() {
    for (let more = true; more; ) {
      const bets = await ask('manifold', `/manifold/v0/bets?limit=1000&afterTime=${manifold.newest}&order=asc`);
      const rows = [];
      for (const bet of bets.map(parsed)) {
        manifold.newest = Math.max(manifold.newest, bet.createdTime);
        // The fills of the moment in which the bet was placed: later ones are fills of other bets.
        const own = bet.fills?.filter(({ timestamp }) => timestamp <= bet.createdTime + 1) ?? [];
        const shares = own.reduce((sum, fill) => sum + fill.shares, 0);
        const amount = own.reduce((sum, fill) => sum + fill.amount, 0);
        if (shares === 0) continue;
        const outcome = tokenOf(`${bet.contractId}:${bet.outcome}`);
        const [price, size] = [Math.abs(amount / shares), Math.abs(shares)];
        rows.push([outcome, new Date(bet.createdTime), bet.id, price, size, amount > 0 ? 1 : -1]);
      }
      await insert('trades', rows);
      more = bets.length === 1_000;
    }
  },
  async prices() {
    for (const part of batchesOf([...manifold.ids], 100)) {
      const probs = parsed(await ask('manifold', `/manifold/v0/market-probs?ids=${part.join('&ids=')}`));
      const quotes = Object.entries(probs).map(([id, { prob }]) => [`${id}:YES`, `${id}:NO`, prob]);
      await insert('prices', priceRows(quotes, new Date()));
    }
  },
};

const limitless = { markets: new Map(), begun: Date.now() };
async function listLimitless(take) {
  for (let page = 1, more = true; more; page += 1) {
    const { data, totalMarketsCount } = await ask('limitless', `/limitless/markets/active?page=${page}&limit=25`);
    const markets = data.flatMap((each) => each.markets ?? [each]).map(parsed);
    await take(markets.filter(({ slug, tokens: ids }) => slug !== undefined && ids));
    more = data.length > 0 && page * 25 < totalMarketsCount;
  }
}
const LIMITLESS = {
  async markets() {
    await listLimitless((markets) => {
      for (const { slug, tradeType, volume, tokens: ids } of markets) {
        const known = limitless.markets.get(slug) ?? { slug, read: volume, newest: limitless.begun };
        limitless.markets.set(slug, { ...known, tradeType, volume, tokens: ids });
      }
    });
  },
  async trades() {
    await LIMITLESS.markets();
    for (const market of limitless.markets.values()) {
      if (market.tradeType !== 'clob' || market.read === market.volume) continue;
      const rows = [];
      let newest = market.newest;
      for (let page = 1, more = true; more; page += 1) {
        const path = `/limitless/markets/${market.slug}/events?page=${page}&limit=100`;
        const { events, totalPages } = await ask('limitless', path);
        for (const event of events) {
          const at = Date.parse(event.createdAt);
          more = at > market.newest && page < totalPages;
          if (at <= market.newest) break;
          const { tokenId, price, matchedSize, side, txHash } = parsed(event);
          newest = Math.max(newest, at);
          const id = `${txHash}-${rows.length}`;
          rows.push([tokenOf(tokenId), new Date(at), id, price, matchedSize / 1e6, side === 0 ? 1 : -1]);
        }
        if (events.length === 0) more = false;
      }
      await insert('trades', rows);
      market.read = market.volume;
      market.newest = newest;
    }
  },
  async prices() {
    await listLimitless(async (markets) => {
      const quotes = markets.map(({ tokens: { yes, no }, prices, tradePrices }) => {
        return [yes, no, prices[0], tradePrices?.sell.market[0], tradePrices?.buy.market[0]];
      });
      await insert('prices', priceRows(quotes, new Date()));
    });
  },
  async books() {
    const endMs = performance.now() + pollMs.books;
    for (const { slug, tokens: ids, tradeType } of hottest(limitless.markets)) {
      if (tradeType !== 'clob') continue;
      if (performance.now() > endMs) return;
      const { bids, asks } = parsed(await ask('limitless', `/limitless/markets/${slug}/orderbook`));
      const levels = (side) => (side ?? []).map(({ price, size }) => [price, size]);
      const flipped = (side) => (side ?? []).map(({ price, size }) => [mirrored(price), size]);
      const rows = [
        [ids.yes, levels(bids), levels(asks)],
        [ids.no, flipped(asks), flipped(bids)],
      ];
      await insert('books', bookRows(rows, new Date()));
    }
  },
};

async function every(ms, work) {
  for (;;) {
    const begunMs = performance.now();
    try {
      await work();
    } catch (error) {
      counts.failures += 1;
      if (counts.failures <= 5) console.error(`plain: ${error.message}`);
    }
    await pause(Math.max(0, begunMs + ms - performance.now()));
  }
}

const venues = [POLYMARKET, KALSHI, MANIFOLD, LIMITLESS];
await Promise.all(venues.map((venue) => venue.markets()));
await Promise.all(venues.map((venue) => venue.prices()));
for (const venue of venues) {
  for (const [kind, poll] of Object.entries(venue)) {
    const isRound = venue === LIMITLESS && kind === 'trades';
    void every(isRound ? LIMITLESS_ROUND_MS : pollMs[kind], poll);
  }
}
process.on('message', () => process.send({ ...counts, cpuUsage: process.cpuUsage() }));
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });
