// A program of its own: prints what the machine is as one line of JSON. The library would stay in the agent's memory.
import { arch, release } from 'node:os'
import { cpu, osInfo } from 'systeminformation'
import { hideOwnLibraries } from '../own-libraries.ts'

hideOwnLibraries()
const [system, processor] = await Promise.all([osInfo(), cpu()])
// The library has this word where an image has no /etc/os-release.
const os = `${system.distro} ${system.release}`.replaceAll('unknown', '').trim() || 'Linux'
const cpuModel = `${processor.manufacturer} ${processor.brand}`.trim()
console.log(JSON.stringify({ os, kernel: release(), arch: arch(), cpuModel }))
