import { describe, expect, it } from 'vitest';
import { VenueError } from '../../../../src/venues/errors.ts';
import { createMemberBatches } from '../../../../src/venues/http/member-batches.ts';
import { createEventDirectory } from '../../../../src/venues/kalshi/event-directory.ts';

const signal = new AbortController().signal;
const row = (ticker: string, event: string) => ({ ticker, event_ticker: event });
const httpError = (statusCode: number) =>
  new VenueError('kalshi', 'http_status', `HTTP ${statusCode}`, { retryable: false, statusCode });

/** A venue with the events E1 to E300. */
function setup() {
  const asked: string[] = [];
  const factsOf = (ticker: string) => ({ event_ticker: ticker, title: `Title of ${ticker}` });
  const isKnown = (ticker: string) => /^E([1-9]|[1-9]\d|[12]\d\d|300)$/.test(ticker);
  const venue = {
    broken: [] as string[],
    batch: async (tickers: readonly string[]): Promise<unknown[]> => tickers.filter(isKnown).map(factsOf),
  };
  const failures: string[] = [];
  const directory = createEventDirectory(
    {
      members: (route) =>
        createMemberBatches({ venue: 'kalshi', route, isFailing: () => false, blame: async () => undefined }),
      listEventsByTicker: (tickers) => {
        asked.push(`batch of ${tickers.length}`);
        return venue.batch(tickers);
      },
      getEvent: async (ticker) => {
        asked.push(ticker);
        if (venue.broken.includes(ticker)) throw httpError(500);
        return isKnown(ticker) ? factsOf(ticker) : undefined;
      },
    },
    (detail) => failures.push(detail),
  );
  const titles = async (...events: string[]) => {
    const rows = await directory.complete(
      events.map((event, at) => row(`M${at}`, event)),
      Date.now(),
      signal,
    );
    return rows.map((each) => (each as { event?: { title?: string } }).event?.title);
  };
  return { asked, venue, directory, titles, failures };
}

describe('the event directory', () => {
  it('requests a hundred events at a time and remembers them', async () => {
    const { asked, titles } = setup();
    const events = Array.from({ length: 250 }, (_, at) => `E${at + 1}`);
    expect(await titles(...events)).toEqual(events.map((event) => `Title of ${event}`));
    expect(asked).toEqual(['batch of 100', 'batch of 100', 'batch of 50']);
    await titles(...events);
    expect(asked.length).toBe(3);
  });

  it('keeps the fields of an event that market records use when a listing nests it', async () => {
    const { directory, asked } = setup();
    const used = {
      event_ticker: 'E1',
      series_ticker: 'S',
      title: 'Weather',
      category: 'Climate',
      product_metadata: {},
      settlement_sources: [{ name: 'Office', url: 'https://a.example' }],
    };
    directory.learn([{ ...row('M1', 'E1'), event: { ...used, markets: [] } }]);
    expect(await directory.complete([row('M2', 'E1')], Date.now(), signal)).toEqual([
      { ...row('M2', 'E1'), event: { ...used, read_at_ms: expect.any(Number) } },
    ]);
    expect(asked).toEqual([]);
  });

  it('requests a single event by its own route', async () => {
    const { asked, titles } = setup();
    expect(await titles('E1', 'E1')).toEqual(['Title of E1', 'Title of E1']);
    expect(asked).toEqual(['E1']);
  });

  it('requests an event by its own route when the batch does not have it', async () => {
    const { asked, titles } = setup();
    expect(await titles('E1', 'GONE', 'E2')).toEqual(['Title of E1', undefined, 'Title of E2']);
    expect(asked).toEqual(['batch of 3', 'GONE']);
    await titles('E1', 'GONE', 'E2');
    expect(asked.length).toBe(2);
  });

  it.each([400, 404, 414, 422])(
    'requests each event alone after HTTP %i to a batch, and no other batch',
    async (status) => {
      const { asked, venue, titles } = setup();
      venue.batch = async () => {
        throw httpError(status);
      };
      expect(await titles('E1', 'E2')).toEqual(['Title of E1', 'Title of E2']);
      expect(await titles('E3', 'E4')).toEqual(['Title of E3', 'Title of E4']);
      expect(asked).toEqual(['batch of 2', 'E1', 'E2', 'E3', 'E4']);
    },
  );

  it('requests each event alone when the answer is about other events', async () => {
    const { asked, venue, titles } = setup();
    venue.batch = async () => ['E7', 'E1'].map((event_ticker) => ({ event_ticker, title: `Title of ${event_ticker}` }));
    expect(await titles('E1', 'E2')).toEqual(['Title of E1', 'Title of E2']);
    expect(await titles('E3', 'E4')).toEqual(['Title of E3', 'Title of E4']);
    expect(asked).toEqual(['batch of 2', 'E2', 'E3', 'E4']);
  });

  it('reads the other events of a batch that one event breaks, and that one by its own route', async () => {
    const { asked, venue, titles } = setup();
    const { batch } = venue;
    venue.batch = async (tickers) => {
      if (tickers.includes('E3')) throw httpError(503);
      return batch(tickers);
    };
    expect(await titles('E1', 'E2', 'E3', 'E4')).toEqual(['E1', 'E2', 'E3', 'E4'].map((event) => `Title of ${event}`));
    expect(asked).toEqual(['batch of 4', 'batch of 2', 'batch of 2', 'batch of 1', 'batch of 1', 'E3']);
  });

  it('leaves a row without its event when the venue does not serve that event, and reports it', async () => {
    const { venue, titles, failures } = setup();
    venue.broken = ['E9'];
    expect(await titles('E9')).toEqual([undefined]);
    expect(failures).toEqual(['events: HTTP 500']);
  });

  it('throws while the host takes no requests', async () => {
    const { venue, titles } = setup();
    venue.batch = async () => {
      throw new VenueError('kalshi', 'circuit_open', 'the circuit breaker is open', { retryable: true });
    };
    await expect(titles('E1', 'E2')).rejects.toMatchObject({ code: 'circuit_open' });
  });

  it('requests no event of a combination', async () => {
    const { asked, directory } = setup();
    const rows = [{ ...row('KXMVE-1', 'KXMVE-S1') }, { ...row('A', 'E1'), mve_collection_ticker: 'KXMVE-R' }];
    expect(await directory.complete(rows, Date.now(), signal)).toEqual(rows);
    expect(asked).toEqual([]);
  });

  it('requests a ticker alone when it does not fit into a list', async () => {
    const { asked, titles } = setup();
    await titles('E1', 'E2', 'E3,E4');
    expect(asked).toEqual(['batch of 2', 'E3,E4']);
  });
});
