import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that run for ten seconds or more, the longest first. */
const LONG = [
  '/test/browser/console',
  '/test/integration/bin/export-archived',
  '/test/integration/api/archive/across-seam',
  '/test/e2e/venues',
  '/test/integration/api/reads/memory-law',
  '/test/integration/archive/',
  '/test/browser/',
  '/test/integration/bin/',
  '/test/integration/streamer/',
  '/test/integration/workers/coverage',
  '/test/integration/workers/witness-trades',
  '/test/integration/api/ops/ops-heartbeats',
  '/test/conformance/venue-adapter/',
  '/test/integration/embedded/',
  '/test/integration/workers/polling/poll-venue',
  '/test/integration/api/streams/executable',
  '/test/fuzz/',
  '/test/integration/store/journal/publisher',
  '/test/integration/alerts/backtest-law',
  '/test/integration/workers/archive-day',
  '/test/integration/workers/absent-process',
  '/test/integration/feeds/',
  '/test/integration/store/alerts/windows',
  '/test/integration/webhooks/sender-',
  '/test/integration/alerts/alert-law',
  '/test/e2e/',
  '/test/integration/clients/',
  '/test/integration/api/streams/',
  '/test/integration/api/reads/',
  '/test/integration/alerts/rule-law',
  '/test/conformance/',
  '/test/integration/runtime/',
  '/test/integration/workers/process-life',
];

/** Starts the longest files first, so that the last ones to end are short: a fresh clone has no recorded durations. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = LONG.findIndex((each) => moduleId.includes(each));
      return place === -1 ? LONG.length : place;
    };
    return (await super.sort(files)).toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}
