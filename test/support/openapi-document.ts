// Expands the OpenAPI document: each operation has its own parameters, security and responses in place of references.
import { ERRORS, type ErrorCode } from '../../shared/errors.ts'

type Content = Record<string, { schema?: object; example?: unknown }>
export type Response = {
  description: string
  content?: Content
  headers?: Record<string, { required?: boolean }>
  'x-error-codes'?: string[]
}
export type Parameter = { name: string; in: string; required?: boolean; schema?: object }
export type Operation = {
  operationId: string
  summary: string
  tags?: string[]
  security: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, Response>
}
type Paths = Record<string, Record<string, Operation>>
export type OpenApiDocument = {
  info?: { description: string }
  paths: Paths
  components: { schemas?: object }
  security?: Record<string, string[]>[]
}

/** @returns the component, where the value is a reference to one */
function resolve<T extends object>(document: OpenApiDocument, value: T): T {
  if (!('$ref' in value)) return value
  const $ref = String(value.$ref)
  let target: unknown = document
  for (const name of $ref.slice(2).split('/')) target = (target as Record<string, unknown>)[name]
  if (typeof target !== 'object' || target === null) throw new Error(`the document has no ${$ref}`)
  return target as T
}

function resolveResponse(document: OpenApiDocument, response: Response): Response {
  const { headers, ...resolved } = resolve(document, response)
  if (headers === undefined) return resolved
  const resolvedHeaders = Object.entries(headers).map(([name, header]) => [name, resolve(document, header)])
  return { ...resolved, headers: Object.fromEntries(resolvedHeaders) }
}

/** Whether the operation can get a code of the response `default`, which all operations of a host share. */
function isPossible(code: string, method: string, { parameters = [], security }: Operation): boolean {
  if (code === 'not_found') return parameters.some((parameter) => parameter.in === 'path')
  if (code.includes('idempotency')) return parameters.some(({ name }) => name === 'Idempotency-Key')
  if (code === 'unauthorized' || code === 'token_expired') return security.length > 0
  return code !== 'request_timeout' || method !== 'get'
}

/** The texts of codes that stand once in the document, as lines of a response. */
function listCommonTexts({ info }: OpenApiDocument, general: Response | undefined): Map<string, string> {
  const lines = [
    ...(info?.description ?? '').matchAll(/^- (`(\w+)`: .+)$/gm),
    ...(general?.description ?? '').matchAll(/^\d+ (`(\w+)`: .+)$/gm),
  ]
  return new Map(lines.map(([, line = '', code = '']) => [code, line]))
}

function expandResponses(
  document: OpenApiDocument,
  method: string,
  operation: Operation,
): Record<string, Response> {
  const { default: reference, ...own } = operation.responses
  const general = reference && resolveResponse(document, reference)
  const texts = listCommonTexts(document, general)
  const codes = (general?.['x-error-codes'] ?? []).filter((code) => isPossible(code, method, operation))
  const ofGeneral = [...Map.groupBy(codes, (code) => String(ERRORS[code as ErrorCode][0]))].map(
    ([status, ofStatus]) => [
      status,
      {
        ...general,
        description: ofStatus.map((code) => texts.get(code)).join('\n\n'),
        'x-error-codes': ofStatus,
      },
    ],
  )
  const ofOperation = Object.entries(own).map(([status, response]) => {
    const resolved = resolveResponse(document, response)
    if (resolved['x-error-codes'] !== undefined) {
      const generalCodes = codes.filter((code) => String(ERRORS[code as ErrorCode][0]) === status)
      resolved['x-error-codes'] = [...new Set([...generalCodes, ...resolved['x-error-codes']])]
    }
    const missing = (resolved['x-error-codes'] ?? []).filter(
      (code) => !new RegExp(`^\`${code}\`: `, 'm').test(resolved.description),
    )
    const others = missing.map((code) => {
      const text = texts.get(code)
      if (text === undefined) throw new Error(`${operation.operationId}: ${code} has no text`)
      return text
    })
    return [status, { ...resolved, description: [resolved.description, ...others].join('\n\n') }]
  })
  return Object.fromEntries([...ofGeneral, ...ofOperation])
}

/** The document with complete operations. The codes of `default` are at their statuses. References to schemas remain. */
export function expandDocument<T extends OpenApiDocument>(document: T): T {
  const expand = (operation: Operation, method: string): Operation => {
    const complete = {
      ...operation,
      security: operation.security ?? document.security ?? [],
      ...(operation.parameters && {
        parameters: operation.parameters.map((parameter) => resolve(document, parameter)),
      }),
    }
    return { ...complete, responses: expandResponses(document, method, complete) }
  }
  const mapValues = <A, B>(values: Record<string, A>, map: (value: A, name: string) => B) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value, name)]))
  return { ...document, paths: mapValues(document.paths, (operations) => mapValues(operations, expand)) }
}
