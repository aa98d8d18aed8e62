-- The defaults of an organization's config and constraints (docs/interface.md 2.2).
create or replace function app.organization_defaults(p_organization_id uuid)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object(
    'config', jsonb_build_object(
      'timezone', 'UTC',
      'departments', '{"growth": {"enabled": true}, "engineering": {"enabled": true}, "support": {"enabled": true}}'::jsonb,
      'limits', '{"maxConcurrentRuns": 5, "maxDailyActions": 100, "maxTaskDepth": 5, "maxPlanOperations": 50,
                  "maxInitiativeDescendants": 200}'::jsonb,
      'storageRootUri', format('org://%s/storage', p_organization_id)),
    'constraints',
      '{"allowedIntegrations": [], "blockedDomains": [], "approvalRequiredForRisk": ["external", "high"]}'::jsonb)
$$;
