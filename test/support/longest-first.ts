import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that run for ten seconds or more, the longest first. */
const LONG = [
  '/test/browser/',
  '/test/e2e/',
  '/test/integration/api/reads/',
  '/test/conformance/venue-adapter/',
  '/test/integration/streamer/',
  '/test/integration/bin/',
  '/test/integration/alerts/backtest-law',
  '/test/integration/alerts/alert-law',
  '/test/integration/alerts/rule-law',
  '/test/integration/store/alerts/windows',
  '/test/integration/workers/witness-trades',
  '/test/integration/embedded/',
  '/test/integration/feeds/',
  '/test/fuzz/',
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
