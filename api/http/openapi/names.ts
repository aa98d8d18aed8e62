/** `Idempotency-Key`, `task_not_found`, `organizationId` → `IdempotencyKey`, `TaskNotFound`, `OrganizationId`. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_whole, first: string) => first.toUpperCase());
}
