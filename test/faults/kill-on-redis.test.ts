import { describe } from 'vitest';
import { describeKilledUnderLoad } from './killed-under-load.ts';

describe('killed under load, queues on redis', () => describeKilledUnderLoad('redis'));
