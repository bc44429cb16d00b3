import { describe } from 'vitest';
import { describeKills } from './kills.ts';

describe('killed under load, queues on postgres', () => describeKills('postgres'));
