// A program of its own: prints what the machine is as one line of JSON. The library would stay in the agent's memory.
import { arch, release } from 'node:os'
import { cpu, osInfo } from 'systeminformation'
import { hideOwnLibraries } from '../own-libraries.ts'

hideOwnLibraries()
const [system, processor] = await Promise.all([osInfo(), cpu()])
const os = `${system.distro} ${system.release}`.trim()
const cpuModel = `${processor.manufacturer} ${processor.brand}`.trim()
console.log(JSON.stringify({ os, kernel: release(), arch: arch(), cpuModel }))
