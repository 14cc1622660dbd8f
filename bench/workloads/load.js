// SPDX-License-Identifier: MIT
// Holds JavaScript sources as a bundler would: texts, tokens with their positions, an index.
'use strict';

const fs = require('fs');
const path = require('path');

const TOKEN = /[A-Za-z_$][\w$]*|\d+(?:\.\d+)?|'[^'\n]*'|"[^"\n]*"|\/\/[^\n]*|[^\s\w]/g;

// npm and corepack come with Node.js; where they do not, Node's own built-in functions do.
function sources() {
	const texts = [];
	const walk = (directory) => {
		let entries;
		try {
			entries = fs.readdirSync(directory, { withFileTypes: true });
		} catch {
			return;
		}
		for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
			const full = path.join(directory, entry.name);
			if (entry.isDirectory()) walk(full);
			else if (entry.isFile() && /\.c?js$/.test(entry.name)) texts.push([full, fs.readFileSync(full, 'utf8')]);
		}
	};
	const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
	walk(path.join(prefix, 'lib', 'node_modules'));
	walk(path.join(prefix, 'share', 'nodejs'));
	for (const name of [...require('module').builtinModules].sort()) {
		if (name.startsWith('_')) continue;
		for (const [key, value] of Object.entries(require(name)))
			if (typeof value === 'function') texts.push([`${name}.${key}`, value.toString()]);
	}
	return texts;
}

const targetBytes = Number(process.argv[2]) * 1048576;
const files = sources();
const modules = [];
const index = new Map();
let round = 0;

while (process.memoryUsage().rss < targetBytes) {
	for (const [name, text] of files) {
		const tokens = [];
		for (const match of text.matchAll(TOKEN))
			tokens.push({ type: /\w/.test(match[0][0]) ? 'word' : 'mark', text: match[0], offset: match.index });
		modules.push({ name, round, size: text.length, tokens });
		for (const token of tokens) {
			let places = index.get(token.text);
			if (!places) index.set(token.text, (places = []));
			places.push(token.offset);
		}
		if (process.memoryUsage().rss >= targetBytes) break;
	}
	round++;
}

process.stdout.write('ready\n');
process.stdin.on('end', () => process.exit(modules.length === 0 ? 1 : 0)).resume();
