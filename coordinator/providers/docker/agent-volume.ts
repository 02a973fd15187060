// The volume with the files of the agent, which all boxes of an engine mount read-only.
import { type AgentFiles, INSTALLED_FILE } from '../container/agent-files.ts'
import { CONTAINER_PATHS } from '../container/paths.ts'
import { ignoreStatus } from '../engine-http/errors.ts'
import type { Engine } from './engine.ts'
import { withHelper } from './helper-container.ts'
import { createLabels, getAgentVolume } from './names.ts'
import { readSmallFile } from './read-small-file.ts'
import { removeOldBuilds } from './remove-old-builds.ts'

/** The files of Node have about 130 MB. */
const COPY_TIMEOUT_MS = 10 * 60_000
const MAX_INSTALLED_BYTES = 200

export class AgentVolume {
  readonly name: string
  readonly #engine: Engine
  readonly #files: AgentFiles
  /** The time of the creation of the volume that has the current build. */
  #filled: string | undefined
  #filling: Promise<void> | undefined

  constructor(engine: Engine, files: AgentFiles) {
    this.name = getAgentVolume(engine.deploymentId)
    this.#engine = engine
    this.#files = files
  }

  /** Ensures that the volume exists and has the current build, with which boxes start their agents from now on. */
  async ensure(): Promise<void> {
    const created = await this.#readCreation()
    if (created !== undefined && created === this.#filled) return
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined
    })
    await this.#filling
  }

  async #readCreation(): Promise<string | undefined> {
    const volume = await this.#engine.http
      .json<{ CreatedAt?: string }>({ method: 'GET', path: `/volumes/${this.name}` })
      .catch(ignoreStatus(404))
    return volume && (volume.CreatedAt ?? '')
  }

  async #fill(): Promise<void> {
    const { http, deploymentId, log } = this.#engine
    await http.json({
      method: 'POST',
      path: '/volumes/create',
      json: { Name: this.name, Labels: createLabels(deploymentId, 'agent') },
    })
    const created = await this.#readCreation()
    const { buildMarker, nodeMarker, nodeDir, buildId } = this.#files
    let replaced: string[] | null = null
    const dir = CONTAINER_PATHS.agentDir
    await withHelper(this.#engine, [{ volume: this.name, path: dir }], async (container) => {
      const [hasBuild = false, hasNode = false] = await Promise.all(
        [buildMarker, nodeMarker].map((name) => this.#hasFile(container, `${dir}/${name}`)),
      )
      const path = `${dir}/${INSTALLED_FILE}`
      const installed = await readSmallFile(this.#engine, container, path, MAX_INSTALLED_BYTES)
      const [linkedBuild = null, linkedNode = nodeDir] = installed?.split(' ') ?? []
      const isCurrent = linkedBuild === buildId && linkedNode === nodeDir && hasBuild && hasNode
      if (isCurrent) return
      await http.json({
        method: 'PUT',
        path: `/containers/${container}/archive`,
        query: { path: dir },
        headers: { 'content-type': 'application/x-tar' },
        content: this.#files.pack({ hasBuild, hasNode, linkedBuild }),
        timeoutMs: COPY_TIMEOUT_MS,
      })
      log.info({ engine: http.name, buildId }, 'the engine has the files of the agent')
      if (linkedBuild !== null && linkedBuild !== buildId) replaced = [linkedBuild, linkedNode]
    })
    this.#filled = created
    if (replaced !== null)
      await removeOldBuilds(this.#engine, this.name, [buildId, nodeDir, ...replaced]).catch((err: unknown) =>
        log.warn({ err }, 'failed to remove old builds of the agent; the next upgrade tries again'),
      )
  }

  async #hasFile(container: string, path: string): Promise<boolean> {
    const response = await this.#engine.http
      .stream({ method: 'HEAD', path: `/containers/${container}/archive`, query: { path } })
      .catch(ignoreStatus(404))
    response?.body.resume()
    return response !== undefined
  }
}
