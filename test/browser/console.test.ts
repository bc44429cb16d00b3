import { alertTests } from './console/alerts.ts';
import { chartTests } from './console/chart.ts';
import { deliveryTests } from './console/deliveries.ts';
import { detailTests } from './console/details.ts';
import { keyTests } from './console/keys.ts';
import { marketTests } from './console/market.ts';
import { startTests } from './console/start.ts';
import { streamTests } from './console/streams.ts';
import { walletTests } from './console/wallets.ts';
import { webhookTests } from './console/webhooks.ts';
import { describeConsole } from './console-desk.ts';

// One API, one browser and one world for all subjects.
describeConsole('the console in Chromium', (desk) => {
  marketTests(desk);
  chartTests(desk);
  detailTests(desk);
  alertTests(desk);
  walletTests(desk);
  webhookTests(desk);
  deliveryTests(desk);
  keyTests(desk);
  startTests(desk);
  streamTests(desk);
});
