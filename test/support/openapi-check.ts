// Checks responses against the OpenAPI document of the coordinator that sent them.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expandDocument, type OpenApiDocument } from './openapi-document.ts'

export type CheckedResponse = { status: number; headers: Headers; text: string }

/** Error codes of requests for which the document has no operation, by host. */
const HOSTS = [
  { prefix: '/api/v1', getCode: (json: { error?: unknown }) => json.error },
  {
    prefix: '/v1/box',
    // POST /desktop/stop has a form of its own.
    getCode: ({ error }: { error?: string | { code?: unknown } }) =>
      typeof error === 'string' ? error : error?.code,
  },
]
const UNKNOWN_ROUTE_STATUSES = new Set([400, 401, 403, 404, 405, 426, 503])

export type OpenApiCheck = (method: string, path: string, response: CheckedResponse) => void

/** The documents of all coordinators differ only in their URL. */
let openApiCheck: Promise<OpenApiCheck> | undefined

/** @returns the check for the coordinator at this origin */
export function getOpenApiCheck(url: string): Promise<OpenApiCheck> {
  openApiCheck ??= fetch(`${url}/openapi.json`).then(async (response) =>
    createOpenApiCheck((await response.json()) as OpenApiDocument),
  )
  return openApiCheck
}

type Schema = { [keyword: string]: unknown }
const SUBSCHEMAS = ['items', 'additionalProperties', 'not']
const SUBSCHEMA_LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems']

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null

/**
 * Returns the schema without unknown fields. The document allows them, because later versions add fields: a test must notice a
 * field that is not documented. Schemas that allow any field, such as those of errors, stay open.
 */
function closeSchema(schema: unknown): unknown {
  if (!isSchema(schema)) return schema
  const closed = Object.entries(schema).map(([keyword, value]) => {
    if (keyword === 'properties') return [keyword, closeAll(value as Schema)]
    if (SUBSCHEMAS.includes(keyword)) return [keyword, closeSchema(value)]
    return [keyword, SUBSCHEMA_LISTS.includes(keyword) ? (value as unknown[]).map(closeSchema) : value]
  })
  const isObject = schema.properties !== undefined && schema.additionalProperties === undefined
  return { ...Object.fromEntries(closed), ...(isObject && { additionalProperties: false }) }
}

const closeAll = (schemas: Schema): Schema =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, closeSchema(schema)]))

const closeComponents = (components: { schemas?: object }) => ({
  ...components,
  schemas: closeAll({ ...components.schemas }),
})

/** @returns a function that returns why a value does not match a schema of the document; null: it does */
export function createSchemaCheck(
  document: OpenApiDocument,
): (schema: object, value: unknown) => string | null {
  // The schemas state every format as a pattern too. A test file validates few responses with each schema: compiling takes most
  // of the time.
  const ajv = new Ajv2020({
    ...{ strict: false, validateFormats: false, inlineRefs: false },
    code: { optimize: false },
  })
  ajv.addSchema({ $id: 'document', components: closeComponents(document.components) })
  const validators = new Map<object, ValidateFunction>()
  return (schema, value) => {
    let validate = validators.get(schema)
    if (validate === undefined) {
      validate = ajv.compile(JSON.parse(JSON.stringify(closeSchema(schema)).replaceAll('"#/', '"document#/')))
      validators.set(schema, validate)
    }
    return validate(value) ? null : ajv.errorsText(validate.errors)
  }
}

/** @returns a function that throws when the response is not one that the document describes */
export function createOpenApiCheck(document: OpenApiDocument): OpenApiCheck {
  const checkValue = createSchemaCheck(document)
  const countParameters = (path: string) => path.split('{').length
  // A path without a parameter takes precedence, such as /prompts/events over /prompts/{runId}.
  const routes = Object.entries(expandDocument(document).paths)
    .sort(([a], [b]) => countParameters(a) - countParameters(b))
    .map(([path, operations]) => ({
      pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
      operations,
    }))

  function findProblem(method: string, url: string, response: CheckedResponse): string | null {
    const { status, headers, text } = response
    const path = url.split('?', 1)[0] ?? ''
    const host = HOSTS.find(({ prefix }) => path.startsWith(`${prefix}/`))
    if (host === undefined) return null
    const route = routes.find(({ pattern }) => pattern.test(path))
    const operation = route?.operations[method === 'HEAD' ? 'get' : method.toLowerCase()]
    if (operation === undefined) {
      if (!UNKNOWN_ROUTE_STATUSES.has(status)) return 'is not documented'
      if (status === 405 && headers.get('allow') === null) return 'has no header Allow'
      if (method !== 'HEAD' && typeof host.getCode(JSON.parse(text)) !== 'string') return 'has no error code'
      return null
    }
    const documented = operation.responses[status]
    if (documented === undefined) return 'has an undocumented status'
    const { content, headers: documentedHeaders = {}, 'x-error-codes': codes } = documented
    for (const [name, { required }] of Object.entries(documentedHeaders))
      if (required && headers.get(name) === null) return `has no header ${name}`
    // Limits of snapshots and terminals do not pass with time.
    if (status === 429 && headers.get('retry-after') === null && !/(snapshot|session)_limit/.test(text))
      return 'has no header Retry-After'
    if (method === 'HEAD') return text === '' ? null : 'has a body'
    if (content === undefined) return text === '' ? null : 'has an undocumented body'
    const type = headers.get('content-type')?.split(';', 1)[0] ?? ''
    const schema = content[type]?.schema
    if (schema === undefined) return `has the undocumented content type ${JSON.stringify(type)}`
    if (type !== 'application/json') return null
    if (codes !== undefined) {
      const code = host.getCode(JSON.parse(text))
      if (!codes.some((documentedCode) => documentedCode === code))
        return `has the undocumented error code ${code}`
    }
    return checkValue(schema, JSON.parse(text))
  }

  return (method, path, response) => {
    const problem = findProblem(method, path, response)
    if (problem === null) return
    throw new Error(
      `The response ${response.status} to ${method} ${path} does not match /openapi.json: it ${problem}. Body: ${response.text.slice(0, 1000)}`,
    )
  }
}
