// Adds the examples to the OpenAPI document. Responses consist of few resources: an example of a resource is one of each response
// with it, and stands in the schema of the resource.
import { EXAMPLES } from './openapi-examples.ts'

type Schema = {
  $ref?: string
  type?: unknown
  properties?: Record<string, Schema>
  items?: Schema
  examples?: unknown[]
}
type MediaType = { schema?: Schema; example?: unknown }
type Body = { $ref?: string; content?: Record<string, MediaType> }
type Operation = { operationId?: string; requestBody?: Body; responses?: Record<string, Body> }
type Components = { schemas?: Record<string, Schema>; responses?: Record<string, Body> }

const nameOf = ({ $ref }: { $ref?: string }): string => $ref?.split('/').at(-1) ?? ''

/** The properties with resources, where the schema has only these and simple values, such as a cursor; else null. */
function listResources({ properties = {} }: Schema): [name: string, schema: Schema][] | null {
  const all = Object.entries(properties)
  const resources = all.filter(([, { $ref, items }]) => $ref !== undefined || items?.$ref !== undefined)
  const isComplex = ({ properties, items }: Schema) => properties !== undefined || items !== undefined
  const others = all.filter((entry) => !resources.includes(entry))
  return resources.length === 0 || others.some(([, schema]) => isComplex(schema)) ? null : resources
}

function addExample(mediaType: MediaType, value: unknown, schemas: Record<string, Schema>): void {
  const { schema } = mediaType
  if (schema === undefined || typeof value !== 'object' || value === null) return
  const component = schemas[nameOf(schema)]
  if (component !== undefined) {
    component.examples ??= [value]
    return
  }
  const resources = listResources(schema)
  if (resources === null) {
    mediaType.example ??= value
    return
  }
  for (const [name, property] of resources) {
    const child = (value as Record<string, unknown>)[name]
    const isList = property.items !== undefined
    const item = isList ? (child as unknown[])[0] : child
    addExample({ schema: isList ? property.items : property } as MediaType, item, schemas)
  }
}

/** Changes the document. */
export function addExamples(document: { paths?: object; components?: object }): void {
  const { schemas = {}, responses = {} } = (document.components ?? {}) as Components
  const pathItems = Object.values((document.paths ?? {}) as Record<string, Record<string, Operation>>)
  const operations = pathItems.flatMap((pathItem) => Object.values(pathItem))
  for (const { operationId = '', requestBody, responses: own = {} } of operations) {
    const example = EXAMPLES[operationId]
    if (example === undefined) continue
    const success = Object.entries(own).find(([status]) => status.startsWith('2'))?.[1]
    const resolve = (body: Body | undefined) => body && (responses[nameOf(body)] ?? body)
    for (const [body, value] of [
      [requestBody, example.request],
      [resolve(success), example.response],
      [resolve(own.default), example.error],
    ] as const) {
      const mediaType = body?.content?.['application/json']
      if (mediaType !== undefined && value !== undefined) addExample(mediaType, value, schemas)
    }
  }
}
