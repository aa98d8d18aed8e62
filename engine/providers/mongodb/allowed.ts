import type { ArgumentIssue } from '../tool.ts';
import { isObject, refused, valueIssues, wrapperOf } from './extended_json.ts';
import { EXPRESSION, EXPRESSION_STAGES, FILTER, MODIFIERS, UPDATE, VALUE_STAGES } from './operators.ts';

type Path = readonly PropertyKey[];
type Issues = Generator<ArgumentIssue>;
type Collections = readonly string[];

const MAX_STAGES = 50;
const NO_OPERATOR = 'is no operator that may be used here';

type Walk = (value: unknown, path: Path) => Issues;

/** Looks at every name of a value: fields, and operators of the list. `inside`: what an operator holds, where it is something else. */
function walker(operators: ReadonlySet<string>, inside: (name: string) => Walk | undefined): Walk {
  return function* walk(value: unknown, path: Path): Issues {
    if (Array.isArray(value)) {
      for (const [index, one] of value.entries()) yield* walk(one, [...path, index]);
    } else if (wrapperOf(value) !== undefined) {
      yield* valueIssues(value, path);
    } else if (isObject(value)) {
      for (const [name, one] of Object.entries(value)) {
        const at = [...path, name];
        if (name.startsWith('$') && !operators.has(name)) yield refused(at, NO_OPERATOR);
        else yield* (inside(name) ?? walk)(one, at);
      }
    }
  };
}

const expressionIssues = walker(EXPRESSION, (name) => (name === '$literal' ? valueIssues : undefined));

/** Of a filter. */
export const filterIssues = walker(FILTER, (name) => (name === '$expr' ? expressionIssues : undefined));

/** Of a projection of `find`. */
export const projectionIssues = walker(new Set([...EXPRESSION, '$elemMatch']), (name) => {
  if (name === '$elemMatch') return filterIssues;
  return name === '$literal' ? valueIssues : undefined;
});

function* sourceIssues(name: unknown, path: Path, collections: Collections): Issues {
  if (typeof name !== 'string' || !collections.includes(name)) yield refused(path, 'is no collection of the settings');
}

type Parts = Readonly<Record<string, Walk>>;

function* partIssues(stage: unknown, path: Path, parts: Parts, required: string): Issues {
  if (!isObject(stage)) {
    yield refused(path, 'must be an object');
    return;
  }
  if (!Object.hasOwn(stage, required)) yield refused([...path, required], 'is required');
  for (const [name, one] of Object.entries(stage)) {
    const walk = Object.hasOwn(parts, name) ? parts[name] : undefined;
    if (walk) yield* walk(one, [...path, name]);
    else yield refused([...path, name], 'is not a known field');
  }
}

function* stageIssues(stage: unknown, path: Path, collections: Collections): Issues {
  const [[name, value] = ['', undefined], ...more] = isObject(stage) ? Object.entries(stage) : [];
  if (name === '' || more.length > 0) {
    yield refused(path, 'must be an object with one stage');
    return;
  }
  const at = [...path, name];
  const pipeline: Walk = (given, to) => pipelineIssues(given, to, collections);
  const source: Walk = (given, to) => sourceIssues(given, to, collections);
  if (EXPRESSION_STAGES.has(name)) yield* expressionIssues(value, at);
  else if (VALUE_STAGES.has(name)) yield* valueIssues(value, at);
  else if (name === '$match') yield* filterIssues(value, at);
  else if (name === '$facet' && isObject(value)) {
    for (const [facet, one] of Object.entries(value)) yield* pipeline(one, [...at, facet]);
  } else if (name === '$unionWith') {
    if (typeof value === 'string') yield* source(value, at);
    else yield* partIssues(value, at, { coll: source, pipeline }, 'coll');
  } else if (name === '$lookup') {
    const field = valueIssues;
    const parts = { from: source, localField: field, foreignField: field, as: field, let: expressionIssues, pipeline };
    yield* partIssues(value, at, parts, 'from');
  } else if (name === '$graphLookup') {
    const names = ['connectFromField', 'connectToField', 'as', 'maxDepth', 'depthField'];
    const fields = Object.fromEntries(names.map((field) => [field, valueIssues]));
    const parts = { ...fields, from: source, startWith: expressionIssues, restrictSearchWithMatch: filterIssues };
    yield* partIssues(value, at, parts, 'from');
  } else yield refused(at, 'is no stage that may be used here');
}

/** Of a pipeline, and of those within it. */
export function* pipelineIssues(pipeline: unknown, path: Path, collections: Collections): Issues {
  if (!Array.isArray(pipeline)) {
    yield refused(path, 'must be an array of stages');
    return;
  }
  if (pipeline.length > MAX_STAGES) yield refused(path, `must have at most ${MAX_STAGES} stages`);
  for (const [index, stage] of pipeline.slice(0, MAX_STAGES).entries()) {
    yield* stageIssues(stage, [...path, index], collections);
  }
}

/** A value of `$push` or `$addToSet`: one, or several by modifiers. */
function* addedIssues(value: unknown, path: Path): Issues {
  if (!isObject(value) || !Object.hasOwn(value, '$each')) {
    yield* valueIssues(value, path);
    return;
  }
  for (const [name, one] of Object.entries(value)) {
    if (MODIFIERS.has(name)) yield* valueIssues(one, [...path, name]);
    else yield refused([...path, name], NO_OPERATOR);
  }
}

function* currentDateIssues(value: unknown, path: Path): Issues {
  const type = isObject(value) && Object.keys(value).length === 1 ? value['$type'] : undefined;
  if (value !== true && type !== 'date' && type !== 'timestamp') yield refused(path, 'must be true, or a $type');
}

const CHANGES: Readonly<Record<string, Walk>> = {
  $push: addedIssues,
  $addToSet: addedIssues,
  $pull: filterIssues,
  $currentDate: currentDateIssues,
};

/** Of an update: operators alone, so that no document is replaced and no pipeline runs. */
export function* updateIssues(update: Readonly<Record<string, unknown>>, path: Path): Issues {
  if (Object.keys(update).length === 0) yield refused(path, 'changes nothing');
  for (const [operator, fields] of Object.entries(update)) {
    const at = [...path, operator];
    if (!UPDATE.has(operator)) yield refused(at, 'is no operator of updates that may be used here');
    else if (!isObject(fields) || Object.keys(fields).length === 0) yield refused(at, 'must be an object of fields');
    else {
      for (const [field, value] of Object.entries(fields)) {
        if (field.startsWith('$')) yield refused([...at, field], 'is no name of a field');
        else yield* (CHANGES[operator] ?? valueIssues)(value, [...at, field]);
      }
    }
  }
}
