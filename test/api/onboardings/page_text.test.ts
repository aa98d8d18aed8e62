import t from 'tap';
import { WITHOUT_TEXT } from '../../../engine/website/index.ts';
import { openSite } from '../../engine/net/support.ts';
import { PRIVATE, shop } from '../../jobs/onboardings/support.ts';
import { openJobs } from '../../jobs/support.ts';
import { expectSuccess, ownerPath } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { openModel } from '../../support/model_server.ts';
import { until } from '../../support/wait.ts';
import { complete, create, get, publish, start } from './support.ts';

const app = await startTestApp(t);
await publish(app);
const model = await openModel(t, () => JSON.stringify({ claims: [] }));
const asked = { RESEARCH_LLM_URL: model.url, RESEARCH_LLM_MODEL: 'small' };
await openJobs(t, app.database.url, { ...PRIVATE, ...asked, STORAGE_URL: app.config.storageUrl });

type Entry = Readonly<{ key: string; title: string; value: string | null; notes: string | null }>;
type Summary = Readonly<{ documents: readonly Readonly<{ entries: readonly Entry[] }>[] }>;

t.test('what a page says is text everywhere: in the review, in the context, and for a model', async (t) => {
  const site = await openSite(
    t,
    shop(undefined, {
      '/': `<!doctype html><style>p { color: red }</style><script>var tracked = 1</script><nav><a href="/app">App</a></nav>
        <main><h1>Lamp Studio</h1><p class="lead" onclick="x()">We make lamps for kitchens &amp; halls, all of them by
        hand. Each takes a day.</p></main><footer>Lamp Studio, Leeds</footer>`,
      '/app': '<title>The app</title><div id="root"></div><script>boot("secret")</script>',
    }),
  );
  const created = await create(app, { name: 'Lamp Studio', website: `${site.origin}/` });
  expectSuccess(await start(app, created));
  const review = await until('the research is over', async () => {
    const now = await get(app, created);
    return now.status !== 'researching' && now;
  });
  const said = 'We make lamps for kitchens & halls, all of them by hand. Each takes a day.';
  t.match(review.review?.summary.evidence, [
    { title: 'Lamp Studio', excerpt: said, text: `Lamp Studio\n${said}` },
    { title: 'The app', excerpt: WITHOUT_TEXT, text: '' },
  ]);
  const read = model.requests[0]?.body.messages[1]?.content ?? '';
  t.match(read, JSON.stringify(`Lamp Studio\n${said}\nApp\nLamp Studio, Leeds`));
  const done = await complete(app, review, { allowWarnings: true });
  expectSuccess(done);
  const summary = expectSuccess(await app.owner.get<Summary>(ownerPath(created, '/context/summary')));
  const entries = summary.documents.flatMap((document) => document.entries);
  t.match(
    entries.filter(({ key }) => key.startsWith('source-')),
    [
      { title: 'Lamp Studio', value: `Lamp Studio\n${said}`, notes: `Read at ${site.origin}/` },
      { title: 'The app', value: null, notes: `${WITHOUT_TEXT} Read at ${site.origin}/app` },
    ],
  );
  for (const text of [read, JSON.stringify(review.review), JSON.stringify(summary)]) {
    t.notMatch(text, /color: red|tracked|<p|<main|class=|onclick|boot\(|&amp;/);
  }
});
