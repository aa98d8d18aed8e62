/** `Idempotency-Key`, `task_not_found`, `organizationId` → `IdempotencyKey`, `TaskNotFound`, `OrganizationId`. */
export function pascalCase(name: string): string {
  const words = name.split(/[^A-Za-z0-9]/);
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
