// Facts that are collected from connections: claimUnit says what is due of a connector, runUnit asks its provider, stores what is new and
// commits it. What is due is claimed by a job, jobs/insights/collect.ts.

export { type Connector, claimUnit, type Unit } from './collect/claim.ts';
export { type Collecting, type CollectLimits, runUnit, type UnitOutcome } from './collect/unit.ts';
