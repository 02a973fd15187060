// The audit log of the workspace.
import { type Filter, readBefore } from './boxes/pages.ts'
import { requireField } from './boxes/require-field.ts'
import type { Routes } from './generated/routes.ts'
import type { AuditEvent, AuditListQuery } from './generated/types.ts'
import type { CallOptions } from './http/calls.ts'

export class Audit {
  readonly #routes: Routes

  constructor(routes: Routes) {
    this.#routes = routes
  }

  /** The events, newest first. */
  list(
    filter: Filter<AuditListQuery> = {},
    options?: CallOptions,
  ): AsyncGenerator<AuditEvent, void, undefined> {
    const { audit } = this.#routes
    return readBefore(
      (page: { limit: number; before?: number }) => audit.list({ ...filter, ...page }, options),
      (page) => requireField(page, 'events'),
    )
  }
}
