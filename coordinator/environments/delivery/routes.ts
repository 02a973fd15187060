// The routes of the repositories of a box (spec §4.9).
import { z } from 'zod'
import { boxIdParamSchema } from '../../../shared/api/boxes.ts'
import { boxReposSchema } from '../../../shared/api/environments.ts'
import { byKey } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { BoxRepoService } from './repo-service.ts'

const boxId = z.object({ id: boxIdParamSchema })

export const boxRepoRoutes = ({ repos }: { repos: BoxRepoService }): Route[] => [
  route({
    id: 'repos.list',
    method: 'GET',
    path: '/boxes/:id/repos',
    atOwnerOf: 'id',
    access: byKey('boxes', 'read'),
    summary: 'Get the repositories of a box, with what git has done for each',
    description:
      'The repositories of the environment version of the box. They are cloned when the box runs for the first time with this version. The events of the box have the results too.',
    request: { params: boxId },
    responses: { 200: boxReposSchema },
    handler: async ({ actor, params }) => ({ repos: await repos.list(actor, params.id) }),
  }),
  route({
    id: 'repos.update',
    method: 'POST',
    path: '/boxes/:id/repos/update',
    atOwnerOf: 'id',
    access: byKey('boxes', 'run'),
    summary: 'Update the repositories of a box',
    description:
      'Responds before the update: poll GET /boxes/{id}/repos until no state is pending or cloning. Each clone is fetched, and its branch is moved forward. Local changes and commits are never overwritten: then the repository fails with the reason, and stays as it is. A repository whose clone has failed is cloned again. A box that does not run is updated when it is woken.',
    request: { params: boxId },
    responses: { 202: boxReposSchema },
    handler: async ({ actor, params }) => ({ repos: await repos.update(actor, params.id) }),
  }),
]
