import t from 'tap';
import { s3Location } from '../../../engine/storage/s3_location.ts';

const region = 'eu-north-1';

t.test('bucket, prefix and place come from the URL, the rest from the settings of AWS', async (t) => {
  t.same(s3Location('s3://files', { region }), {
    bucket: 'files',
    prefix: '',
    region,
    endpoint: undefined,
    pathStyle: false,
    credentials: undefined,
  });
  t.match(s3Location('s3://files/a%20b//c/', { region }), { prefix: 'a b/c/' });
  t.match(s3Location('s3://files?region=x', { region }), { region: 'x' });
  const here = s3Location('s3://files/?endpoint=http%3A%2F%2Flocalhost%3A9000%2F');
  t.match(here, { endpoint: 'http://localhost:9000', region: 'us-east-1', pathStyle: true });
  t.match(s3Location('s3://files', { endpoint: 'https://s3.example.com' }), { pathStyle: true });
  t.match(s3Location('s3://files?pathStyle=0', { endpoint: 'https://s3.example.com' }), { pathStyle: false });
});

t.test('what cannot be meant is refused in one line', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['s3://', /name of a bucket/],
    ['s3:///prefix', /name of a bucket/],
    ['s3://b', /name of a bucket/],
    ['s3://buck et', /name of a bucket|Invalid URL/],
    ['s3://files:9000/x', /name of a bucket/],
    ['s3://files/x#y', /name of a bucket/],
    ['s3://me:secret@files', /AWS_ACCESS_KEY_ID/],
    ['s3://files?accessKeyId=x', /AWS_ACCESS_KEY_ID/],
    ['s3://files?pathstyle=1', /no parameter pathstyle/],
    ['s3://files?pathStyle=yes', /pathStyle must be 0 or 1/],
    ['s3://files?region=a/b', /region/],
    ['s3://files?endpoint=localhost:9000', /endpoint must be/],
    ['s3://files?endpoint=ftp://localhost', /endpoint must be/],
    ['s3://files?endpoint=http://me:secret@localhost', /endpoint must be/],
    ['s3://files/%zz', /percent-encoding/],
    ['s3://files/a%2Fb', /cannot be part of a prefix/],
    ['s3://files/a%00', /cannot be part of a prefix/],
  ];
  for (const [url, message] of cases) {
    t.throws(() => s3Location(url, { region }), { message }, url);
    if (url.includes('secret')) t.throws(() => s3Location(url, { region }), { message: /^(?:(?!secret).)*$/ });
  }
  t.throws(() => s3Location('s3://files'), { name: 'RangeError', message: /^AWS_REGION: required/ });
});
