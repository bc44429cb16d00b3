import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that run for half a minute or more. */
const LONG = [
  '/test/conformance/venue-adapter/',
  '/test/e2e/',
  '/test/browser/',
  '/test/fuzz/',
  '/test/integration/runtime/',
  '/test/integration/bin/',
  '/test/integration/workers/process-life',
];

/** Starts the longest files first, so that the last ones to end are short: a fresh clone has no recorded durations. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isShort = ({ moduleId }: TestSpecification) => Number(!LONG.some((place) => moduleId.includes(place)));
    return (await super.sort(files)).toSorted((a, b) => isShort(a) - isShort(b));
  }
}
