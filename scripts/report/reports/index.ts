import type { ReportName } from '../options.ts';
import { cost } from './cost.ts';
import { failures } from './failures.ts';
import { queue } from './queue.ts';
import type { Report } from './report.ts';
import { throughput } from './throughput.ts';
import { waiting } from './waiting.ts';

export type { Section } from './report.ts';
export const reports: Readonly<Record<ReportName, Report>> = { throughput, cost, waiting, queue, failures };
