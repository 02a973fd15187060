// The route GET /operations/{id} (spec §4.7).
import { z } from 'zod'
import { operationResponseSchema } from '../../../shared/api/operations.ts'
import { byKey } from '../../http/access.ts'
import { idParam, type Route, route } from '../../http/route.ts'
import type { OperationService } from './service.ts'

export const operationRoutes = ({ operations }: { operations: OperationService }): Route[] => [
  route({
    id: 'operations.get',
    method: 'GET',
    path: '/operations/:id',
    access: byKey('boxes', 'read'),
    summary: 'Get an operation',
    description: 'Available for 30 days after the operation finishes.',
    request: { params: z.object({ id: idParam }) },
    responses: { 200: operationResponseSchema },
    handler: async ({ actor, params }) => ({ operation: await operations.get(actor, params.id) }),
  }),
]
