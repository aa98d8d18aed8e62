create view reporting.integrations with (security_barrier) as
select
  i.organization_id,
  i.id as integration_id,
  i.key,
  i.provider,
  i.name,
  i.status::text as status,
  case
    when c.integration_id is null then 'not_connected'
    when c.reauthorization_reason is not null then 'needs_reauthorization'
    when i.settings_required and i.settings is null then 'needs_configuration'
    when c.degraded_at is not null then 'degraded'
    else 'ready' end as readiness,
  i.access_mode::text as access_mode,
  c.kind::text as connection_kind,
  c.connected_at,
  c.reauthorization_reason::text as reauthorization_reason,
  c.reauthorization_at,
  c.degraded_at,
  c.degraded_code,
  c.checked_at,
  i.discovery_at,
  i.discovery_status::text as discovery_status,
  coalesce(t.tools, 0) as tools,
  coalesce(t.enabled_tools, 0) as enabled_tools,
  coalesce(t.enabled_write_tools, 0) as enabled_write_tools,
  i.created_at,
  i.updated_at
from app.integrations i
left join app.integration_connections c on c.organization_id = i.organization_id and c.integration_id = i.id
left join (
  select organization_id, integration_id, count(*) filter (where offered) as tools,
    count(*) filter (where enabled) as enabled_tools, count(*) filter (where enabled and effect = 'write') as enabled_write_tools
  from app.integration_tools
  group by organization_id, integration_id) t on t.organization_id = i.organization_id and t.integration_id = i.id;

comment on view reporting.integrations is
  'What organizations connect to and how it goes, without accounts, settings and credentials.';
comment on column reporting.integrations.organization_id is 'The organization.';
comment on column reporting.integrations.integration_id is 'The integration.';
comment on column reporting.integrations.key is 'Its key in the organization.';
comment on column reporting.integrations.provider is 'The provider: stripe, github and so on.';
comment on column reporting.integrations.name is 'Name.';
comment on column reporting.integrations.status is 'enabled or disabled.';
comment on column reporting.integrations.readiness is
  'not_connected, needs_configuration, ready, degraded (the provider fails or limits us) or needs_reauthorization.';
comment on column reporting.integrations.access_mode is 'read_only or full: whether tools that write may be enabled.';
comment on column reporting.integrations.connection_kind is 'How it is connected: oauth2, api_key and so on; null while it is not.';
comment on column reporting.integrations.connected_at is 'When it was connected last.';
comment on column reporting.integrations.reauthorization_reason is 'Why it has to be authorized again; null: it need not.';
comment on column reporting.integrations.reauthorization_at is 'Since when.';
comment on column reporting.integrations.degraded_at is 'Since when the provider fails or limits us; null: it works.';
comment on column reporting.integrations.degraded_code is 'With which code of ours.';
comment on column reporting.integrations.checked_at is 'When the provider was last found well or ill.';
comment on column reporting.integrations.discovery_at is 'When the provider was last asked what there is.';
comment on column reporting.integrations.discovery_status is 'How that went: ok or failed.';
comment on column reporting.integrations.tools is 'Tools that the provider offers.';
comment on column reporting.integrations.enabled_tools is 'Those of them that agents may use.';
comment on column reporting.integrations.enabled_write_tools is 'Those of these that change something outside.';
comment on column reporting.integrations.created_at is 'When it was made.';
comment on column reporting.integrations.updated_at is 'When it was changed last.';
