import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  Kind,
  Lexer,
  type OperationDefinitionNode,
  type SelectionSetNode,
  Source,
  TokenKind,
  TypeInfo,
  type ValueNode,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { Issue } from '../../engine/db/problem.ts';
import { validationFailed } from '../http/errors.ts';
import type { Kept } from './kept.ts';
import { ordersOfAll } from './schema/catalog.ts';

export const MAX_QUERY_LENGTH = 20_000;
export const MAX_TOKENS = 4_000;
export const MAX_DEPTH = 12;
/** With each fragment where it is spread, as the planner sees them: fragments that spread each other multiply. */
const MAX_SELECTIONS = 10_000;
/** Brackets inside of brackets: whoever walks through far more of them runs out of stack. */
const MAX_NESTING = 100;
/** Rows that a query may ask for at most, as pages inside of pages multiply. */
export const MAX_COST = 10_000;
export const MAX_PAGE = 100;
export const DEFAULT_PAGE = 50;

/** What counts more than one row: each asks the database once more, or for a whole index. */
const COSTS: Readonly<Record<string, number>> = {
  causes: 20,
  taskCounts: 100,
  runCounts: 100,
  runRequestCounts: 10,
};

const OPENING: ReadonlySet<TokenKind> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSING: ReadonlySet<TokenKind> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/** True for a text that is not even to be parsed. @throws GraphQLError where it is none of GraphQL */
export function isNestedTooDeep(query: string): boolean {
  const lexer = new Lexer(new Source(query));
  let level = 0;
  for (let { kind } = lexer.advance(); kind !== TokenKind.EOF; { kind } = lexer.advance()) {
    if (OPENING.has(kind)) level += 1;
    else if (CLOSING.has(kind)) level -= 1;
    if (level > MAX_NESTING) return true;
  }
  return false;
}

type Variables = Readonly<Record<string, unknown>>;

const isConnection = (type: string): boolean => type.endsWith('Connection');

function given(value: ValueNode | undefined, variables: Variables): unknown {
  if (value === undefined || value.kind === Kind.NULL) return undefined;
  if (value.kind === Kind.VARIABLE) return variables[value.name.value] ?? undefined;
  if (value.kind === Kind.INT) return Number(value.value);
  return value;
}

function argument(field: FieldNode, name: string): ValueNode | undefined {
  return field.arguments?.find((one) => one.name.value === name)?.value;
}

/** The length of the page that a field asks for; undefined where it does not say. */
function pageOf(field: FieldNode, variables: Variables): unknown {
  return given(argument(field, 'first'), variables) ?? given(argument(field, 'last'), variables);
}

/** The variables with the defaults of the operation. */
function withDefaults(operation: OperationDefinitionNode, sent: Variables): Variables {
  const values: Record<string, unknown> = { ...sent };
  for (const { variable, defaultValue } of operation.variableDefinitions ?? []) {
    const name = variable.name.value;
    if (!(name in values)) values[name] = defaultValue && given(defaultValue, {});
  }
  return values;
}

/** Lists that do not say how long their page is get one of `DEFAULT_PAGE`. */
function withPages(schema: GraphQLSchema, document: DocumentNode, variables: Variables): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      Field(field) {
        const type = getNamedType(types.getType());
        if (!type || !isConnection(type.name) || pageOf(field, variables) !== undefined) return undefined;
        const others = (field.arguments ?? []).filter((one) => !['first', 'last'].includes(one.name.value));
        const first = {
          kind: Kind.ARGUMENT,
          name: { kind: Kind.NAME, value: 'first' },
          value: { kind: Kind.INT, value: String(DEFAULT_PAGE) },
        } as const;
        return { ...field, arguments: [...others, first] };
      },
    }),
  );
}

/** `size`: how many selections there are once each fragment stands where it is spread. */
type Judged = Readonly<{ cost: number; depth: number; size: number }>;

/** Depth and cost of a selection, in one walk that follows fragments: they have no circles, validation saw to that. */
function createJudge(
  schema: GraphQLSchema,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  variables: Variables,
) {
  const issues: Issue[] = [];
  const known = new Map<string, Judged>();

  function refuse(field: FieldNode, message: string, code: string): void {
    issues.push({ path: field.alias?.value ?? field.name.value, message, code });
  }

  function page(field: FieldNode): number {
    if (argument(field, 'first') && argument(field, 'last')) {
      refuse(field, 'takes first or last, not both', 'first_or_last');
    }
    const length = pageOf(field, variables);
    if (typeof length === 'number' && length > MAX_PAGE)
      refuse(field, `gives at most ${MAX_PAGE} rows`, 'too_many_rows');
    if (typeof length === 'number' && length < 0) refuse(field, 'gives a page of at least 0 rows', 'too_few_rows');
    return typeof length === 'number' ? Math.max(length, 1) : DEFAULT_PAGE;
  }

  function ofField(field: FieldNode, parent: string): Judged {
    const name = field.name.value;
    // What the schema says of itself is bounded by the schema.
    if (name.startsWith('__')) return { cost: 0, depth: 0, size: 1 };
    const type = schema.getType(parent);
    const definition = type && 'getFields' in type ? type.getFields()[name] : undefined;
    const result = definition && getNamedType(definition.type);
    const own = COSTS[name] ?? 0;
    if (!result || !field.selectionSet || !isCompositeType(result)) return { cost: own, depth: 1, size: 1 };
    const inner = ofSelection(field.selectionSet, result.name);
    const rows = isConnection(result.name) ? page(field) : 1;
    // `nodes` and `edges` stand for the rows of their list, which were counted.
    const row = isConnection(parent) || isConnection(result.name) || name === 'node' ? 0 : 1;
    return {
      cost: rows * inner.cost + (isConnection(result.name) ? rows : 0) + row + own,
      depth: inner.depth + 1,
      size: inner.size + 1,
    };
  }

  function ofSelection(selection: SelectionSetNode, parent: string): Judged {
    let cost = 0;
    let depth = 0;
    let size = 0;
    for (const one of selection.selections) {
      let judged: Judged;
      if (one.kind === Kind.FIELD) judged = ofField(one, parent);
      else if (one.kind === Kind.INLINE_FRAGMENT) {
        judged = ofSelection(one.selectionSet, one.typeCondition?.name.value ?? parent);
      } else judged = ofFragment(one.name.value);
      cost += judged.cost;
      depth = Math.max(depth, judged.depth);
      size += judged.size + 1;
    }
    return { cost, depth, size };
  }

  /** Once each: fragments that spread each other would otherwise be walked through over and over again. */
  function ofFragment(name: string): Judged {
    const fragment = fragments.get(name);
    if (!fragment) return { cost: 0, depth: 0, size: 0 };
    const judged = known.get(name) ?? ofSelection(fragment.selectionSet, fragment.typeCondition.name.value);
    known.set(name, judged);
    return judged;
  }

  return { ofSelection, issues };
}

/** At the root, without an organization, lists are ordered by what has an index over all of them. */
function orderIssues(operation: OperationDefinitionNode, document: DocumentNode, variables: Variables): Issue[] {
  const issues: Issue[] = [];
  const defaults = new Map(
    operation.variableDefinitions?.map(({ variable, defaultValue }) => [variable.name.value, defaultValue]),
  );
  const allowed = new RegExp(`^(${[...ordersOfAll, 'primary_key'].join('|')})_(asc|desc)$`, 'i');
  const named = (value: ValueNode | undefined): string[] => {
    if (value?.kind === Kind.LIST) return value.values.flatMap(named);
    if (value?.kind === Kind.ENUM) return [value.value];
    if (value?.kind !== Kind.VARIABLE) return [];
    const name = value.name.value;
    if (!(name in variables)) return named(defaults.get(name));
    const values = variables[name];
    return [values].flat().filter((one): one is string => typeof one === 'string');
  };
  const seen = new Set<string>();
  function look(selection: SelectionSetNode): void {
    for (const one of selection.selections) {
      if (one.kind === Kind.INLINE_FRAGMENT) look(one.selectionSet);
      else if (one.kind === Kind.FRAGMENT_SPREAD) {
        // Once each, as in ofFragment.
        if (seen.has(one.name.value)) continue;
        seen.add(one.name.value);
        const found = document.definitions.find(
          (definition): definition is FragmentDefinitionNode =>
            definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === one.name.value,
        );
        if (found) look(found.selectionSet);
      } else {
        for (const order of named(argument(one, 'orderBy'))) {
          if (allowed.test(order)) continue;
          const message = `is ordered by ${order} within one organization alone: send X-Organization-Id`;
          issues.push({ path: one.alias?.value ?? one.name.value, message, code: 'organization_required' });
        }
      }
    }
  }
  look(operation.selectionSet);
  return issues;
}

/**
 * A valid operation within its limits, and with a length for each page.
 * @throws Problem 400 `validation_failed` with an issue for each limit that it breaks
 */
export function limited(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  request: Readonly<{ variables: Variables; organizationId: string | null }>,
  pages: Kept<DocumentNode>,
): DocumentNode {
  const variables = withDefaults(operation, request.variables);
  const fragments = new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  const judge = createJudge(schema, fragments, variables);
  const root = operation.operation === 'mutation' ? 'Mutation' : 'Query';
  const { cost, depth, size } = judge.ofSelection(operation.selectionSet, root);
  const issues = [...judge.issues];
  if (depth > MAX_DEPTH) {
    issues.push({
      path: 'query',
      message: `is ${depth} levels deep; at most ${MAX_DEPTH} are allowed`,
      code: 'too_deep',
    });
  }
  if (size > MAX_SELECTIONS) {
    issues.push({ path: 'query', message: 'has too many selections in its fragments', code: 'too_many_selections' });
  }
  if (cost > MAX_COST) {
    const message = `asks for up to ${cost} rows; at most ${MAX_COST} are allowed: ask for shorter pages`;
    issues.push({ path: 'query', message, code: 'too_costly' });
  }
  if (request.organizationId === null) issues.push(...orderIssues(operation, document, request.variables));
  if (issues.length > 0) throw validationFailed(issues.slice(0, 20), 'The query is beyond its limits.');
  // Pages differ by which variables are left out, and by nothing else.
  const absent = Object.keys(variables).filter((name) => variables[name] === undefined || variables[name] === null);
  return pages.get(absent.sort().join(' '), () => withPages(schema, document, variables));
}
