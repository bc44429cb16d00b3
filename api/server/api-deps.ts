import type { AddressRules } from '../../src/domain/webhooks/address-policy.ts';
import type { Dependency } from '../../src/observe/probe-server.ts';
import type { AnswerDeps, WriteDeps } from '../http/deps.ts';
import type { AuthDeps } from '../middleware/authenticate.ts';
import type { ReportDeps } from '../middleware/request-context.ts';
import type { ConsoleOptions } from '../pages/console/public-market.ts';
import type { PageDeps } from '../pages/kit/page-deps.ts';
import type { OpsOptions } from '../pages/ops/access/session.ts';
import type { OverviewDeps } from '../pages/ops/problems/read.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import type { DownloadDeps } from '../routes/archive/files.ts';
import type { StreamDeps } from '../streams/port.ts';

/** The dependencies of the routes of the API. */
export type RoutesDeps = AuthDeps &
  AnswerDeps &
  MarketReadDeps &
  WriteDeps &
  StreamDeps &
  DownloadDeps & {
    addressRules: AddressRules;
    /** The checks of `/health/ready`. */
    dependencies: readonly Dependency[];
  };

/** The dependencies of the app. The app neither opens nor closes them. */
export type ApiDeps = RoutesDeps &
  PageDeps &
  Pick<OverviewDeps, 'archivePlan'> &
  ReportDeps & {
    /** Origins whose pages may call the API from a browser; `*` means all. */
    corsOrigins: readonly string[];
    /** The operator pages; absent means that they are off. */
    ops?: OpsOptions;
    /** The console at `/`; absent means that it is off. */
    console?: ConsoleOptions;
  };
