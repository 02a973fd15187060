// Responses that several operations of the OpenAPI document have are components with a name, which the operations refer to.

import type { ZodOpenApiResponseObject } from 'zod-openapi'
import type { Route } from './route.ts'

export const toPascalCase = (text: string): string =>
  text
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

export type ResponsePool = {
  /** @returns the response of the key, which is created once. Routes add it in the order of the document. */
  add(
    key: string,
    route: Route,
    create: () => { name: string; response: ZodOpenApiResponseObject },
  ): ZodOpenApiResponseObject
  /** Names the responses that several routes have added. */
  assignNames(): void
}

export function createResponsePool(): ResponsePool {
  const entries = new Map<string, { name: string; response: ZodOpenApiResponseObject; routes: Route[] }>()
  return {
    add: (key, route, create) => {
      const entry = entries.get(key) ?? { ...create(), routes: [] }
      entries.set(key, entry)
      entry.routes.push(route)
      return entry.response
    },
    assignNames: () => {
      const names = new Set<string>()
      const shared = [...entries.values()].filter(({ routes }) => routes.length > 1)
      // The most common response has the plain name. Others with this name have the id of their first route.
      for (const { name, response, routes } of shared.sort((a, b) => b.routes.length - a.routes.length)) {
        response.id = names.has(name) ? `${name}Of${toPascalCase(routes[0]?.id ?? '')}` : name
        if (names.has(response.id)) throw new Error(`Two responses have the name ${response.id}.`)
        names.add(response.id)
      }
    },
  }
}
