export type S3Credentials = Readonly<{
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}>;

/** What the standard AWS settings say; a parameter of the URL wins over them. */
export type S3Settings = Readonly<{
  region?: string | undefined;
  endpoint?: string | undefined;
  /** Without them the SDK looks in its usual places: a profile, a role of the container or the machine. */
  credentials?: S3Credentials | undefined;
}>;

export type S3Location = Readonly<{
  bucket: string;
  /** Empty, or whole segments that end with a slash. */
  prefix: string;
  region: string;
  /** Undefined: the one of AWS for the region. */
  endpoint: string | undefined;
  pathStyle: boolean;
  credentials: S3Credentials | undefined;
}>;

const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/;
const REGION = /^[A-Za-z0-9-]{1,64}$/;
const PARAMETERS = ['endpoint', 'region', 'pathStyle'];
// Others than AWS ask for some region, and mostly take any.
const REGION_ELSEWHERE = 'us-east-1';

function parsePrefix(pathname: string): string {
  let decoded: string[];
  try {
    decoded = pathname.split('/').map(decodeURIComponent);
  } catch {
    throw new RangeError('STORAGE_URL: the prefix is not valid percent-encoding');
  }
  const parts = decoded.filter((part) => part !== '');
  for (const part of parts) {
    // Servers and clients resolve dots, and XML cannot carry control characters.
    if (part === '.' || part === '..' || /[\x00-\x1f\x7f/\\]/.test(part)) {
      throw new RangeError(`STORAGE_URL: ${JSON.stringify(part)} cannot be part of a prefix`);
    }
  }
  return parts.map((part) => `${part}/`).join('');
}

function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '') {
    throw new RangeError('STORAGE_URL: endpoint must be an http:// or https:// URL without credentials');
  }
  return url.href.replace(/\/$/, '');
}

/**
 * Reads `s3://bucket/prefix?endpoint=…&region=…&pathStyle=1`.
 * @throws RangeError with one line that names the setting
 */
export function s3Location(storageUrl: string, settings: S3Settings = {}): S3Location {
  const url = new URL(storageUrl);
  const { searchParams: given } = url;
  // They would be shown wherever the setting is.
  if (url.username !== '' || [...given.keys()].some((name) => /key|secret|token|password/i.test(name))) {
    throw new RangeError('STORAGE_URL: credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  }
  const unknown = [...given.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) {
    throw new RangeError(`STORAGE_URL: s3 has no parameter ${unknown}; there are ${PARAMETERS.join(', ')}`);
  }
  if (!BUCKET.test(url.hostname) || url.port !== '' || url.hash !== '') {
    throw new RangeError('STORAGE_URL: must be s3://bucket/prefix with the name of a bucket');
  }
  const endpointText = given.get('endpoint') || settings.endpoint;
  const endpoint = endpointText ? parseEndpoint(endpointText) : undefined;
  const region = given.get('region') || settings.region || (endpoint && REGION_ELSEWHERE);
  if (!region) throw new RangeError('AWS_REGION: required by an s3 STORAGE_URL that names no region and no endpoint');
  if (!REGION.test(region)) throw new RangeError('STORAGE_URL: region must be the name of a region');
  const pathStyle = given.get('pathStyle') ?? (endpoint ? '1' : '0');
  if (pathStyle !== '0' && pathStyle !== '1') throw new RangeError('STORAGE_URL: pathStyle must be 0 or 1');
  return {
    bucket: url.hostname,
    prefix: parsePrefix(url.pathname),
    region,
    endpoint,
    pathStyle: pathStyle === '1',
    credentials: settings.credentials,
  };
}
