import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  Lexer,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  Source,
  TokenKind,
  TypeInfo,
  TypeMetaFieldDef,
  type ValueNode,
  valueFromASTUntyped,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { LRUCache } from 'lru-cache';
import type { Issue } from '../../engine/db/problem.ts';
import { validationFailed } from '../http/errors.ts';
import { filtersOfOne, ordersOfAll } from './schema/catalog.ts';

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

/** Values that a response may have at most: each field counts for each row that it is of, by whatever name. */
export const MAX_VALUES = 500_000;
/** Fields that ask for the schema: what they return is computed at once, while nobody else is served. */
const MAX_INTROSPECTIONS = 2;

/** What counts more than one row: each asks the database once more, or for a whole index. */
const COSTS: Readonly<Record<string, number>> = {
  causes: 20,
  taskCounts: 100,
  runCounts: 100,
  runRequestCounts: 10,
};
/** A document in a row can be as long as a thousand rows of other columns. */
const DOCUMENT_COST = 9;
/** What is expected of a list that has no pages. */
const LIST_LENGTH = 10;
/** The same of lists in the schema: fields of a type, arguments of a field, which most have none of. */
const SCHEMA_LIST_LENGTH = 5;

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

/** Those that the operation declares, with its defaults. A map: names of variables are also names of what objects inherit. */
type Variables = ReadonlyMap<string, unknown>;

const isConnection = (type: string): boolean => type.endsWith('Connection');

function given(value: ValueNode | undefined, variables: Variables): unknown {
  if (value?.kind === Kind.VARIABLE) return variables.get(value.name.value) ?? undefined;
  return value && (valueFromASTUntyped(value) ?? undefined);
}

function argument(field: FieldNode, name: string): ValueNode | undefined {
  return field.arguments?.find((one) => one.name.value === name)?.value;
}

/** The length of the page that a field asks for; undefined where it does not say. */
function pageOf(field: FieldNode, variables: Variables): unknown {
  return given(argument(field, 'first'), variables) ?? given(argument(field, 'last'), variables);
}

function variablesOf(operation: OperationDefinitionNode, sent: Readonly<Record<string, unknown>>): Variables {
  return new Map(
    operation.variableDefinitions?.map(({ variable, defaultValue }) => {
      const name = variable.name.value;
      return [name, Object.hasOwn(sent, name) ? sent[name] : defaultValue && valueFromASTUntyped(defaultValue)];
    }),
  );
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

function fieldOf(
  schema: GraphQLSchema,
  parent: string,
  name: string,
): Pick<GraphQLField<unknown, unknown>, 'type'> | undefined {
  if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
  if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  const type = schema.getType(parent);
  return isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;
}

/**
 * `size`: how many selections there are once each fragment stands where it is spread. `values`: how many fields the response
 * has. `introspections`: how many fields ask for the schema.
 */
type Judged = Readonly<{ cost: number; depth: number; size: number; values: number; introspections: number }>;

const NOTHING: Judged = { cost: 0, depth: 0, size: 0, values: 0, introspections: 0 };

/** Depth, cost and values of a selection, in one walk that follows fragments: they have no cycles, validation saw to that. */
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

  /** What the schema says of itself: no rows, but values, and the lists in it multiply as pages do. */
  function ofIntrospection(field: FieldNode, parent: string): Judged {
    const name = field.name.value;
    const definition = fieldOf(schema, parent, name);
    const result = definition && getNamedType(definition.type);
    if (!result || !field.selectionSet) return { ...NOTHING, size: 1, values: 1 };
    const inner = ofSelection(field.selectionSet, result.name);
    const length = isListType(getNullableType(definition.type))
      ? name === 'types'
        ? Object.keys(schema.getTypeMap()).length
        : SCHEMA_LIST_LENGTH
      : 1;
    return { ...NOTHING, size: inner.size + 1, values: length * (inner.values + 1) };
  }

  function ofField(field: FieldNode, parent: string): Judged {
    const name = field.name.value;
    if (parent.startsWith('__')) return ofIntrospection(field, parent);
    if (name === '__typename') return { ...NOTHING, size: 1, values: 1 };
    if (name.startsWith('__')) return { ...ofIntrospection(field, parent), introspections: 1 };
    const definition = fieldOf(schema, parent, name);
    const result = definition && getNamedType(definition.type);
    const own = COSTS[name] ?? (result?.name === 'JSON' ? DOCUMENT_COST : 0);
    if (!result || !field.selectionSet || !isCompositeType(result)) {
      return { ...NOTHING, cost: own, depth: 1, size: 1, values: 1 };
    }
    const inner = ofSelection(field.selectionSet, result.name);
    const rows = isConnection(result.name) ? page(field) : 1;
    // `nodes` and `edges` stand for the rows of their list, which were counted.
    const isRows = isConnection(parent) || name === 'node';
    const row = isRows || isConnection(result.name) ? 0 : 1;
    const isList = !isRows && isListType(getNullableType(definition.type));
    return {
      cost: rows * inner.cost + (isConnection(result.name) ? rows : 0) + row + own,
      depth: inner.depth + 1,
      size: inner.size + 1,
      values: (isList ? LIST_LENGTH : rows) * (inner.values + 1),
      introspections: inner.introspections,
    };
  }

  function ofSelection(selection: SelectionSetNode, parent: string): Judged {
    let sum = NOTHING;
    for (const one of selection.selections) {
      let judged: Judged;
      if (one.kind === Kind.FIELD) judged = ofField(one, parent);
      else if (one.kind === Kind.INLINE_FRAGMENT) {
        judged = ofSelection(one.selectionSet, one.typeCondition?.name.value ?? parent);
      } else judged = ofFragment(one.name.value);
      sum = {
        cost: sum.cost + judged.cost,
        depth: Math.max(sum.depth, judged.depth),
        size: sum.size + judged.size + 1,
        values: sum.values + judged.values,
        introspections: sum.introspections + judged.introspections,
      };
    }
    return sum;
  }

  /** Once each: fragments that spread each other would otherwise be walked through over and over again. */
  function ofFragment(name: string): Judged {
    const fragment = fragments.get(name);
    if (!fragment) return NOTHING;
    const judged = known.get(name) ?? ofSelection(fragment.selectionSet, fragment.typeCondition.name.value);
    known.set(name, judged);
    return judged;
  }

  return { ofSelection, issues };
}

/**
 * At the root, without an organization, lists are ordered by what has an index over all of them, and not filtered by what
 * has none.
 */
function scopeIssues(operation: OperationDefinitionNode, document: DocumentNode, variables: Variables): Issue[] {
  const issues: Issue[] = [];
  const allowed = new RegExp(`^(${[...ordersOfAll, 'primary_key'].join('|')})_(asc|desc)$`, 'i');
  const named = (value: ValueNode | undefined): unknown[] =>
    value?.kind === Kind.LIST ? value.values.flatMap(named) : [given(value, variables)].flat();
  const filteredBy = (value: ValueNode | undefined): string[] =>
    value?.kind === Kind.OBJECT
      ? value.fields.map(({ name }) => name.value)
      : Object.keys((given(value, variables) as object | undefined) ?? {});
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
        const refuse = (what: string) => {
          const message = `is ${what} within one organization alone: send X-Organization-Id`;
          issues.push({ path: one.alias?.value ?? one.name.value, message, code: 'organization_required' });
        };
        for (const order of named(argument(one, 'orderBy'))) {
          if (typeof order === 'string' && !allowed.test(order)) refuse(`ordered by ${order}`);
        }
        for (const column of filteredBy(argument(one, 'filter'))) {
          if (filtersOfOne.get(one.name.value)?.has(column)) refuse(`filtered by ${column}`);
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
  request: Readonly<{ variables: Readonly<Record<string, unknown>>; organizationId: string | null }>,
  pages: LRUCache<string, DocumentNode>,
): DocumentNode {
  const variables = variablesOf(operation, request.variables);
  const fragments = new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  const judge = createJudge(schema, fragments, variables);
  const root = operation.operation === 'mutation' ? 'Mutation' : 'Query';
  const { cost, depth, size, values, introspections } = judge.ofSelection(operation.selectionSet, root);
  const issues = [...judge.issues];
  const refuse = (message: string, code: string) => issues.push({ path: 'query', message, code });
  if (depth > MAX_DEPTH) refuse(`is ${depth} levels deep; at most ${MAX_DEPTH} are allowed`, 'too_deep');
  if (size > MAX_SELECTIONS) refuse('has too many selections in its fragments', 'too_many_selections');
  if (cost > MAX_COST) {
    refuse(`asks for up to ${cost} rows; at most ${MAX_COST} are allowed: ask for shorter pages`, 'too_costly');
  }
  if (introspections > MAX_INTROSPECTIONS) {
    refuse(`asks ${introspections} times for the schema; at most ${MAX_INTROSPECTIONS} are allowed`, 'too_costly');
  }
  if (values > MAX_VALUES) refuse('asks for too many values: name fewer fields, or shorter pages', 'too_many_values');
  if (request.organizationId === null) issues.push(...scopeIssues(operation, document, variables));
  if (issues.length > 0) throw validationFailed(issues.slice(0, 20), 'The query is beyond its limits.');
  // Pages differ by which variables are left out, and by nothing else.
  const absent = [...variables.keys()].filter((name) => (variables.get(name) ?? undefined) === undefined);
  const key = absent.sort().join(' ');
  const paged = pages.get(key) ?? withPages(schema, document, variables);
  pages.set(key, paged);
  return paged;
}
