// The routes of directories of a fake coordinator: those of the agent, on the home directories of the fake boxes.
import { makeDirectory, moveEntry, removeEntry } from '../../agent/files/change.ts'
import { createOwnerNames } from '../../agent/files/entry.ts'
import { toFileError } from '../../agent/files/errors.ts'
import { listDirectory, statEntry } from '../../agent/files/list.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, type Handler, readText, sendJson } from './fake-coordinator.ts'

type Deps = Parameters<typeof statEntry>[1] & { stateDir: string }

export function addFakeFiles(fake: FakeCoordinator): void {
  const readOwnerNames = createOwnerNames()
  const { signal } = new AbortController()
  const serve =
    (run: (input: unknown, deps: Deps) => Promise<unknown>): Handler =>
    async (request, response, [, name = '', query]) => {
      if (!fake.boxes.some(({ hostname }) => hostname === name)) throw new ApiError('not_found')
      const stateDir = '/no/such/state'
      const limits = { stateDir, credentials: null }
      const deps = { home: fake.getHome(name), stateDir, limits, readOwnerNames }
      const input =
        query === undefined
          ? JSON.parse(await readText(request))
          : Object.fromEntries(new URLSearchParams(query))
      const result = await run(input, deps).catch((error) => {
        throw toFileError(error, input.path ?? input.from)
      })
      sendJson(response, result)
    }
  fake.addRoutes([
    [
      /^GET \/v1\/box\/([^/]+)\/files\/list\?(.*)$/,
      serve((query, deps) => listDirectory(query, deps, signal)),
    ],
    [/^GET \/v1\/box\/([^/]+)\/files\/stat\?(.*)$/, serve(statEntry)],
    [/^POST \/v1\/box\/([^/]+)\/files\/mkdir$/, serve(makeDirectory)],
    [/^POST \/v1\/box\/([^/]+)\/files\/move$/, serve(moveEntry)],
    [/^DELETE \/v1\/box\/([^/]+)\/files\?(.*)$/, serve((query, deps) => removeEntry(query, deps, signal))],
  ])
}
