import { findTests } from './console/find.ts';
import { marketListTests } from './console/markets.ts';
import { pageTests } from './console/pages.ts';
import { describeConsole } from './console-desk.ts';

// Half of the tests of the console, which run beside the other half.
describeConsole('the pages and lists of the console in Chromium', (desk) => {
  pageTests(desk);
  marketListTests(desk);
  findTests(desk);
});
