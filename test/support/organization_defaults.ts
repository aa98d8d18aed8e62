/** What an organization has where its author said nothing. */
export const defaults = (id: string) => ({
  status: 'active',
  onboardedAt: null,
  workDispatchStoppedAt: null,
  rootUri: `org://${id}`,
  authorizationEpoch: 1,
  config: {
    timezone: 'UTC',
    departments: { growth: { enabled: true }, engineering: { enabled: true }, support: { enabled: true } },
    limits: {
      maxConcurrentRuns: 5,
      maxDailyActions: 100,
      maxTaskDepth: 5,
      maxPlanOperations: 50,
      maxInitiativeDescendants: 200,
    },
    storageRootUri: `org://${id}/storage`,
  },
  constraints: { allowedIntegrations: [], blockedDomains: [], approvalRequiredForRisk: ['external', 'high'] },
});
