/** Who sent a request, and about what. */
export type AdminContext = Readonly<{
  /** The one organization that the request is about; null: all of them. */
  organizationId: string | null;
  /** The name of the token that let the request in. */
  admin: string;
  requestId: string;
}>;

/** Called for an error that nobody foresaw, with the status of the response. */
export type Report = (error: unknown, status: number) => void;
