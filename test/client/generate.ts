// Generates the types and the methods for the routes of the client from the OpenAPI document.
import { compile, type JSONSchema } from 'json-schema-to-typescript'

type Schema = { $ref?: string; [keyword: string]: unknown }
type Parameter = { name: string; in: string; required?: boolean; schema: Schema; description?: string }
type Content = Record<string, { schema?: Schema }>
type Response = { content?: Content }
type Operation = {
  operationId: string
  summary: string
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, Response>
}
export type Document = {
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    parameters?: Record<string, Parameter>
    responses?: Record<string, Response>
  }
}
type Method = {
  operation: Operation
  method: string
  path: string
  parameters: Parameter[]
}

const HEADER = '// Generated from the OpenAPI document by `npm run client:generate`.\n'

/** The responses of these routes may take as long as what they wait for. */
const SLOW = [
  ...['commands.run', 'prompts.start', 'terminals.start', 'desktop.start', 'files.upload', 'images.pull'],
  ...['snapshots.create', 'boxes.createTemplate'],
]

/** Only some requests to these routes accept an Idempotency-Key: what is written by hand sends it. */
const SOMETIMES_IDEMPOTENT = ['commands.run']

const toPascalCase = (text: string): string =>
  text.replace(/(?:^|[.-])(\w)/g, (_match, letter: string) => letter.toUpperCase())

const getGroup = ({ operationId }: Operation): string => operationId.split('.')[0] ?? ''
const getMethodName = ({ operationId }: Operation): string => operationId.split('.')[1] ?? ''

const getName = (ref: string): string => ref.split('/').at(-1) ?? ''

/** In the order of their ids, with the shared parameters and responses in place of the references to them. */
function listMethods({ paths, components }: Document): Method[] {
  const resolve = <Value extends object>(
    value: Value | { $ref: string },
    shared: Record<string, Value> = {},
  ): Value => {
    if (!('$ref' in value)) return value
    const found = shared[getName(value.$ref)]
    if (found === undefined) throw new Error(`${value.$ref} does not exist`)
    return found
  }
  const resolveResponses = ({ responses }: Operation) =>
    Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [
        status,
        resolve<Response>(response, components.responses),
      ]),
    )
  return Object.entries(paths)
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({
        operation: { ...operation, responses: resolveResponses(operation) },
        method: method.toUpperCase(),
        path,
        parameters: (operation.parameters ?? []).map((parameter) =>
          resolve<Parameter>(parameter, components.parameters),
        ),
      })),
    )
    .sort((a, b) => (a.operation.operationId < b.operation.operationId ? -1 : 1))
}

/** The schema of the first 2xx response with JSON; undefined: the response has no JSON. */
function getResponseSchema({ responses }: Operation): Schema | undefined {
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  return success?.content?.['application/json']?.schema
}

const getBodySchema = ({ requestBody }: Operation): Schema | undefined =>
  requestBody?.content['application/json']?.schema

/** The name of the type: that of the component, or of the operation. */
function getTypeName(schema: Schema, fallback: string): string {
  return schema.$ref === undefined ? fallback : getName(schema.$ref)
}

/** References without what stands beside them, which would make a type of its own of each. */
function cleanSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cleanSchema)
  if (typeof value !== 'object' || value === null) return value
  if ('$ref' in value && typeof value.$ref === 'string')
    return { $ref: value.$ref.replace('#/components/schemas/', '#/definitions/') }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([keyword]) => keyword !== 'title')
      .map(([keyword, child]) => [keyword, cleanSchema(child)]),
  )
}

/** The types of all requests and responses. */
export async function generateTypes(document: Document): Promise<string> {
  const definitions: Record<string, unknown> = { ...document.components.schemas }
  for (const { operation, parameters } of listMethods(document)) {
    const name = toPascalCase(operation.operationId)
    const body = getBodySchema(operation)
    if (body !== undefined && body.$ref === undefined) definitions[`${name}Request`] = body
    const response = getResponseSchema(operation)
    if (response !== undefined && response.$ref === undefined) definitions[`${name}Response`] = response
    const query = parameters.filter((parameter) => parameter.in === 'query')
    if (query.length > 0) definitions[`${name}Query`] = toQuerySchema(query)
  }
  const schema = {
    $id: 'Boxwood',
    type: 'object',
    additionalProperties: false,
    properties: {},
    definitions: cleanSchema(definitions),
  } as JSONSchema
  const text = await compile(schema, 'Boxwood', {
    bannerComment: HEADER,
    unreachableDefinitions: true,
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    style: { semi: false, singleQuote: true, printWidth: 110 },
  })
  return text
    .replaceAll(
      / \*\n \* This interface was referenced by `Boxwood`'s JSON-Schema\n \* via the `definition` "\w+"\.\n/g,
      '',
    )
    .replaceAll(
      / \* This interface was referenced by `Boxwood`'s JSON-Schema\n \* via the `definition` "\w+"\.\n/g,
      '',
    )
    .replaceAll(/\/\*\*\n \*\/\n/g, '')
    .replace('export interface Boxwood {}\n', '')
    .replaceAll('{} | unknown[] | string | number | boolean | null', 'unknown')
}

/** In JavaScript, a flag is a boolean, and a number a number. */
function toQuerySchema(parameters: Parameter[]): Schema {
  const toSchema = ({ schema, description }: Parameter): Schema => {
    const isFlag = Array.isArray(schema.enum) && schema.enum.includes('true')
    const { description: _own, ...rest } = schema
    const isNumber = schema.pattern === String.raw`^\d{1,15}$`
    const converted = isFlag ? { type: 'boolean' } : isNumber ? { type: 'integer' } : rest
    return { ...converted, ...(description !== undefined && { description }) }
  }
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(parameters.map((parameter) => [parameter.name, toSchema(parameter)])),
    required: parameters.filter(({ required }) => required === true).map(({ name }) => name),
  }
}

/** The methods of all routes, by the groups of their ids. */
export function generateRoutes(document: Document): string {
  const groups = Map.groupBy(listMethods(document), ({ operation }) => getGroup(operation))
  const used = new Set<string>()
  const functions = [...groups].map(([group, methods]) => {
    const text = methods.map((method) => generateMethod(method, used)).join('')
    const calls = ['connect', 'json', 'open'].filter((name) => text.includes(`    ${name}(`))
    return `const create${toPascalCase(group)} = ({ ${calls.join(', ')} }: Calls) => ({\n${text}})\n`
  })
  const members = [...groups.keys()].map((group) => `  ${group}: create${toPascalCase(group)}(calls),\n`)
  const types = [...used].sort().map((name) => `  ${name},\n`)
  return `${HEADER}import type { CallOptions, Calls } from '../http/calls.ts'
import type { Socket, SocketHandlers } from '../http/socket.ts'
import type { RequestBody, OpenResponse } from '../http/transport.ts'
import type {
${types.join('')}} from './types.ts'

${functions.join('\n')}
/** One method for each route of the API, by the groups of the operationIds. */
export const createRoutes = (calls: Calls) => ({
${members.join('')}})

export type Routes = ReturnType<typeof createRoutes>
`
}

function generateMethod({ operation, method, path, parameters }: Method, used: Set<string>): string {
  const use = (name: string): string => {
    used.add(name)
    return name
  }
  const id = toPascalCase(operation.operationId)
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const query = parameters.filter((parameter) => parameter.in === 'query')
  const bodySchema = getBodySchema(operation)
  const responseSchema = getResponseSchema(operation)
  const isSocket = operation.responses['101'] !== undefined
  const isRaw = operation.requestBody !== undefined && bodySchema === undefined
  const isQueryRequired = query.some(({ required }) => required === true)
  const isBodyRequired = operation.requestBody?.required === true
  const isIdempotent =
    parameters.some(({ name }) => name === 'Idempotency-Key') &&
    !SOMETIMES_IDEMPOTENT.includes(operation.operationId)

  // A required argument does not follow an optional one.
  const body: [string, string][] = []
  if (bodySchema !== undefined)
    body.push([`body${isBodyRequired ? '' : '?'}`, use(getTypeName(bodySchema, `${id}Request`))])
  if (isRaw) body.push(['body', 'RequestBody'])
  const queryArgument: [string, string][] =
    query.length === 0 ? [] : [[`query${isQueryRequired ? '' : '?'}`, use(`${id}Query`)]]
  const inputs = isQueryRequired ? [...queryArgument, ...body] : [...body, ...queryArgument]
  const args: [string, string][] = [
    ...inPath.map((name): [string, string] => [name, name === 'port' ? 'number' : 'string']),
    ...(isSocket ? [['handlers', 'SocketHandlers'] satisfies [string, string]] : []),
    ...inputs,
    ['options?', 'CallOptions'],
  ]
  const fields = [
    ...(query.length > 0 ? ['query'] : []),
    ...(body.length > 0 ? ['body'] : []),
    ...(isRaw ? ['isRaw: true'] : []),
    ...(isIdempotent ? ['isIdempotent: true'] : []),
    ...(SLOW.includes(operation.operationId) ? ['isSlow: true'] : []),
  ]
  const call = isSocket ? 'connect' : responseSchema === undefined && !isEmpty(operation) ? 'open' : 'json'
  const result = isSocket
    ? 'Socket'
    : call === 'open'
      ? 'OpenResponse'
      : responseSchema === undefined
        ? 'undefined'
        : use(getTypeName(responseSchema, `${id}Response`))
  const url = `\`${path.replace(/\{(\w+)\}/g, (_match, name) => `\${encode(${name})}`)}\``
  const parts = [
    `'${method}'`,
    inPath.length === 0 ? `'${path}'` : url.replaceAll('encode(', 'encodeURIComponent('),
  ]
  const input = fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
  return `  /** ${operation.summary}. */
  ${getMethodName(operation)}: (${args.map(([name, type]) => `${name}: ${type}`).join(', ')}): Promise<${result}> =>
    ${call}(${isSocket ? `${parts[1]}, handlers` : parts.join(', ')}, ${input}, options),
`
}

const isEmpty = ({ responses }: Operation): boolean => responses['204'] !== undefined
