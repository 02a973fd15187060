// Routes of machines: the tokens that enroll them, and the exchange of a token by an agent.
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import {
  createEnrollmentRequestSchema,
  createEnrollmentResponseSchema,
  ENROLLMENT_ERROR_CODES,
  enrollmentListSchema,
  enrollRequestSchema,
  enrollResponseSchema,
} from '../../shared/api/machines.ts'
import { LIMITS } from '../../shared/limits.ts'
import { REGIONS } from '../../shared/tiers.ts'
import { ADMISSION_ERRORS } from '../admission/refusal.ts'
import { getClientAddress, toSubject } from '../http/client-address.ts'
import { idParam, type Route, route, routeWithoutCredential } from '../http/route.ts'
import type { ClientLimiter } from '../identity/sessions/rate-limits.ts'
import type { Enrollments } from './enrollments.ts'
import type { ExchangeToken } from './exchange.ts'
import { createAccess, getEnrollmentAccess } from './rules.ts'

export type MachineRoutesOptions = {
  machines: { enrollments: Enrollments }
  /** The configured origin for clients; null: the origin to which a request was sent. */
  publicUrl: string | null
  /** Builds in the background what the machine will download. */
  prepareBundles(): void
}

export const machineRoutes = ({
  machines: { enrollments },
  publicUrl,
  prepareBundles,
}: MachineRoutesOptions): Route[] => [
  route({
    id: 'machines.createToken',
    method: 'POST',
    path: '/machines',
    access: createAccess,
    summary: 'Create a token that enrolls a machine as a box',
    description: `The response has the line to run on the machine. The token works once, within ${LIMITS.enrollmentSeconds / 60} minutes, and the response is the only one that contains it. It stops working when its creator is removed or may not enroll machines any more. The policy machineEnrollment may exclude members.`,
    request: { body: createEnrollmentRequestSchema },
    fieldErrorCodes: ENROLLMENT_ERROR_CODES,
    responses: { 201: createEnrollmentResponseSchema },
    errors: ['name_taken', 'environment_too_large', 'rate_limited', ...ADMISSION_ERRORS.enroll],
    errorDescriptions: {
      invalid_region: `region must be one of ${REGIONS.join(', ')}`,
      policy_denied:
        'The policy machineEnrollment allows only owners to enroll machines, or the policy memberBoxLimit allows the member no further box.',
    },
    async handler({ actor, body, request }) {
      const created = await enrollments.create(actor, body, publicUrl ?? getRequestOrigin(request))
      prepareBundles()
      return created
    },
  }),
  route({
    id: 'machines.listTokens',
    method: 'GET',
    path: '/machines',
    access: getEnrollmentAccess('read'),
    summary: 'List the tokens that can still enroll a machine, newest first',
    description: 'Enrolled machines are boxes: GET /boxes lists them with the kind machine.',
    responses: { 200: enrollmentListSchema },
    handler: async ({ actor }) => ({ enrollments: await enrollments.list(actor) }),
  }),
  route({
    id: 'machines.revokeToken',
    method: 'DELETE',
    path: '/machines/:id',
    access: getEnrollmentAccess('write'),
    summary: 'Revoke a token that enrolls a machine',
    description:
      'No effect on a token that is revoked or has expired. A token that has been used is not found: delete the box of its machine instead.',
    request: { params: z.object({ id: idParam }) },
    responses: { 204: null },
    handler: async ({ actor, params }) => enrollments.revoke(actor, params.id),
  }),
]

/** The routes under ENROLL_PATH, outside the API: installers send these requests. */
export const agentEnrollRoutes = ({
  machines: { exchange, limiter },
}: {
  machines: { exchange: ExchangeToken; limiter: ClientLimiter }
}): Route[] => [
  routeWithoutCredential({
    method: 'POST',
    path: '',
    summary: 'Exchange a token for the identity of a new box',
    request: { body: enrollRequestSchema },
    responses: { 201: enrollResponseSchema },
    handler: async ({ body, request }) => {
      limiter.count('enroll', toSubject(getClientAddress(request)))
      return exchange(body)
    },
  }),
]

/** The origin to which the client has sent the request: another machine may reach the coordinator there too. */
function getRequestOrigin({ protocol, host }: FastifyRequest): string {
  // The client writes the header, and runs the line in a shell.
  if (!/^[\w.-]+(:\d+)?$|^\[[\da-f:]+\](:\d+)?$/i.test(host)) return 'http://localhost'
  return `${protocol}://${host}`
}
