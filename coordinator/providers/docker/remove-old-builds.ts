// Removes builds of the agent that no box uses from the volume of all boxes. Engines have no call that removes files, so the Node
// of the volume does it, in a container without network.
import { MARKER_PREFIX } from '../container/agent-files.ts'
import { CONNECTED_BUILD_FILE, CONTAINER_PATHS, NODE_FILES } from '../container/paths.ts'
import type { Engine } from './engine.ts'
import { runInHelper } from './helper-container.ts'
import { createLabels, filterByLabels } from './names.ts'
import { readSmallFile } from './read-small-file.ts'

const MAX_CONNECTED_BYTES = 200

/**
 * The arguments are the directory and the names of the builds and Nodes that stay. Those builds name further Nodes, and each Node
 * has a loader beside it. Markers are removed first: what has none is written again when it is needed.
 */
const SCRIPT = `
const { readdirSync, readFileSync, rmSync } = require('node:fs')
const [, dir, ...names] = process.argv
const kept = new Set(names)
const all = readdirSync(dir)
const marker = '${MARKER_PREFIX}'
for (const name of names) if (all.includes(marker + name)) kept.add(readFileSync(dir + '/' + marker + name, 'utf8'))
for (const name of [...kept]) if (name.startsWith('node-')) kept.add('l' + name.slice(5, 11))
const unused = all.filter((name) => /^(?:[0-9a-f]{16}|node-[0-9a-f]{12}|l[0-9a-f]{6})$/.test(name) && !kept.has(name))
for (const name of unused) rmSync(dir + '/' + marker + name, { force: true })
for (const name of unused) rmSync(dir + '/' + name, { recursive: true, force: true })
`

/** @param names the current and the previous build, and their Nodes */
export async function removeOldBuilds(
  engine: Engine,
  volume: string,
  names: readonly string[],
): Promise<void> {
  const kept = [...names, ...(await listConnectedBuilds(engine))]
  const { agentDir, nodeDir } = CONTAINER_PATHS
  await runInHelper(engine, [{ volume, path: agentDir }], {
    command: [`${nodeDir}/${NODE_FILES.program}`, '--eval', SCRIPT, agentDir, ...kept],
    env: [`LD_LIBRARY_PATH=${nodeDir}/${NODE_FILES.libraries}`],
  })
}

/** The builds of the agents that run. A stopped box starts the current build, or the previous one. */
async function listConnectedBuilds(engine: Engine): Promise<string[]> {
  const containers = await engine.http.json<{ Id: string; State?: string }[]>({
    method: 'GET',
    path: '/containers/json',
    query: { all: true, filters: filterByLabels(createLabels(engine.deploymentId, 'machine')) },
  })
  const builds = new Set<string>()
  for (const { Id, State } of containers) {
    if (State === 'exited' || State === 'created') continue
    const path = `${CONTAINER_PATHS.state}/${CONNECTED_BUILD_FILE}`
    const [build] = ((await readSmallFile(engine, Id, path, MAX_CONNECTED_BYTES)) ?? '').split(/\s/, 1)
    // The box controls the file.
    if (build !== undefined && /^[0-9a-f]{16}$/.test(build)) builds.add(build)
  }
  return [...builds]
}
