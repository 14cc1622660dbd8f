// SPDX-License-Identifier: MIT
// Holds the JDK's own classes as an IDE would: file contents, names of their constant pools, an index.

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

public class Load {
	record Unit(String name, byte[] contents, List<String> names) {}

	static List<String> names(byte[] contents) throws IOException {
		List<String> names = new ArrayList<>();
		DataInputStream in = new DataInputStream(new ByteArrayInputStream(contents));
		in.skipBytes(8);
		int count = in.readUnsignedShort();
		for (int i = 1; i < count; i++) {
			int tag = in.readUnsignedByte();
			switch (tag) {
			case 1 -> names.add(in.readUTF());
			case 5, 6 -> { in.skipBytes(8); i++; }
			case 7, 8, 16, 19, 20 -> in.skipBytes(2);
			case 15 -> in.skipBytes(3);
			default -> in.skipBytes(4);
			}
		}
		return names;
	}

	public static void main(String[] arguments) throws IOException {
		long targetBytes = Long.parseLong(arguments[0]) << 20;
		List<Unit> units = new ArrayList<>();
		Map<String, List<Unit>> index = new HashMap<>();
		FileSystem jrt = FileSystems.getFileSystem(URI.create("jrt:/"));
		List<Path> paths;

		try (Stream<Path> walk = Files.walk(jrt.getPath("/modules/java.base"))) {
			paths = walk.filter(path -> path.toString().endsWith(".class")).sorted().collect(Collectors.toList());
		}
		Runtime runtime = Runtime.getRuntime();
		for (int n = 0; runtime.totalMemory() - runtime.freeMemory() < targetBytes; n++) {
			Path path = paths.get(n % paths.size());
			byte[] contents = Files.readAllBytes(path);
			Unit unit = new Unit(path.toString(), contents, names(contents));
			units.add(unit);
			for (String name : unit.names())
				index.computeIfAbsent(name, key -> new ArrayList<>()).add(unit);
		}
		System.out.println("ready");
		while (System.in.read() >= 0)
			;
		System.exit(units.isEmpty() || index.isEmpty() ? 1 : 0);
	}
}
