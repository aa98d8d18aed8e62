// What tests work with, made through the transitions themselves with the rights of the API and the jobs.
export * from './fixtures/dispatch.ts';
export * from './fixtures/hierarchies.ts';
export * from './fixtures/organizations.ts';
export * from './fixtures/outcomes.ts';
export * from './fixtures/runs.ts';
export * from './fixtures/tasks.ts';
